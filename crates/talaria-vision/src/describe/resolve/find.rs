//! From one entry of the configuration to a backend that can be asked.

use std::time::Duration;

use talaria_config::{BackendConfig, Endpoint, KeyRing, MainModel, ProviderFacts, Secret};
use url::Url;

use super::Resolver;
use crate::describe::backend::{Backend, Link};
use crate::describe::preset::{ANY_MODEL, Preset, ZAI, preset, preset_at};
use crate::describe::verdict::{Fault, FaultKind};
use crate::live_route::{bare, is_same_model, shown};
use crate::local::is_local;
use crate::{ApiShape, ProviderLimits};

/// The word for the provider of the main model.
const MAIN: &str = "main";
/// Where z.ai answers over its `OpenAI`-compatible API, on any of its hosts.
const ZAI_PATH: &str = "/api/paas/v4";
/// The word for an endpoint of the operator's own.
const CUSTOM: &str = "custom";

/// What an entry says once the provider it names is looked up.
struct Draft<'a> {
    path: &'a str,
    provider: String,
    model: Option<&'a str>,
    endpoint: Option<&'a Endpoint>,
    key: Option<&'a Secret>,
    api: Option<&'a str>,
    timeout: Duration,
    preset: Option<&'static Preset>,
}

impl<'a> Resolver<'a> {
    /// An entry of the configuration as a link.
    pub(super) fn entry(&self, entry: &BackendConfig) -> Link {
        match self.backend(entry) {
            Ok(backend) => Link::Http(backend),
            Err(fault) => Link::Broken {
                via: name_of(entry),
                fault,
            },
        }
    }

    pub(super) fn backend(&self, entry: &BackendConfig) -> Result<Backend, Fault> {
        if let Some(problem) = &entry.problem {
            return Err(misconfigured(problem));
        }
        let named = entry.provider.as_deref().map(str::trim);
        if let (Some(word), None) = (named, &entry.base_url)
            && word.eq_ignore_ascii_case(MAIN)
        {
            return self.main(entry.model.as_deref(), entry.timeout);
        }
        let facts = named.and_then(|name| self.facts(name));
        let host_preset = entry.base_url.as_ref().and_then(|url| at_host(url));
        let preset = named.and_then(preset).or(host_preset);
        let provider = match (named, &entry.base_url) {
            (Some(name), _) => name.to_owned(),
            (None, Some(url)) => host_preset.map_or_else(|| host_of(url), |it| it.name.to_owned()),
            (None, None) => {
                let words = format!("{}: names neither a provider nor a base_url", entry.path);
                return Err(misconfigured(&words));
            }
        };
        // With an address of its own the entry speaks for itself; nobody's key goes there.
        let facts = facts.filter(|_| entry.base_url.is_none());
        if let (None, Some(problem)) =
            (&entry.api_key, facts.and_then(|it| it.key_problem.as_ref()))
        {
            return Err(misconfigured(problem));
        }
        self.finish(&Draft {
            path: &entry.path,
            provider,
            model: entry
                .model
                .as_deref()
                .or_else(|| facts.and_then(|it| it.default_model.as_deref())),
            endpoint: entry
                .base_url
                .as_ref()
                .or_else(|| facts.and_then(|it| it.base_url.as_ref())),
            key: entry
                .api_key
                .as_ref()
                .or_else(|| facts.and_then(|it| it.api_key.as_ref())),
            api: entry
                .api
                .as_deref()
                .or_else(|| facts.and_then(|it| it.api.as_deref())),
            timeout: entry.timeout,
            preset,
        })
    }

    /// The provider of the main model, with the model wished for, or the one that suits.
    pub(super) fn main(&self, wished: Option<&str>, timeout: Duration) -> Result<Backend, Fault> {
        let main = &self.config.gate.main;
        if !has_main(main) {
            let words = "the configuration names no main model (`model`)";
            return Err(misconfigured(words));
        }
        let provider = self.main_provider();
        let facts = self.facts(&provider);
        let own_address = main.base_url.as_ref().filter(|_| facts.is_none());
        let endpoint = facts
            .and_then(|it| it.base_url.as_ref())
            .or(main.base_url.as_ref());
        let problem = facts.and_then(|it| it.key_problem.as_ref());
        let problem = problem.or(main.key_problem.as_ref());
        let key = main
            .api_key
            .as_ref()
            .or_else(|| facts.and_then(|it| it.api_key.as_ref()));
        if let (None, Some(problem)) = (key, problem) {
            return Err(misconfigured(problem));
        }
        let preset = preset(&provider).or_else(|| own_address.and_then(at_host));
        let eye = preset.filter(|it| it.is_own_eye).and_then(|it| it.model);
        let substitute = preset.filter(|it| !it.is_keyless).and_then(|it| it.model);
        let is_blind = |model: &&str| self.sees(&provider, model) == Some(false);
        let model = wished.or(eye).or_else(|| {
            let own = main.model.as_deref();
            // A provider whose main model is blind may still have one that sees.
            own.filter(|model| !is_blind(model)).or(substitute).or(own)
        });
        self.finish(&Draft {
            path: "model",
            provider: provider.clone(),
            model,
            endpoint,
            key,
            api: facts
                .and_then(|it| it.api.as_deref())
                .or(main.api.as_deref()),
            timeout,
            preset,
        })
    }

    fn finish(&self, draft: &Draft<'_>) -> Result<Backend, Fault> {
        let (path, preset) = (draft.path, draft.preset);
        let text = draft.endpoint.map(Endpoint::as_str);
        let Some(text) = text.or_else(|| preset.map(|it| it.endpoint)) else {
            let words = format!(
                "{path}: no provider `{}` is known; set its base_url",
                shown(&draft.provider)
            );
            return Err(misconfigured(&words));
        };
        let mut endpoint = parse(text)
            .ok_or_else(|| misconfigured(&format!("{path}: the base_url is no http address")))?;
        let mut api = api_of(draft, &endpoint)?;
        if preset.is_some_and(|it| it.name == ZAI) {
            api = ApiShape::OpenaiChat;
            if endpoint.path().contains("/anthropic") {
                endpoint.set_path(ZAI_PATH);
            }
        }
        if api == ApiShape::Bedrock {
            let words = format!("{path}: Bedrock wants signed requests, which are not made here");
            return Err(misconfigured(&words));
        }
        let key = self.key(draft, &endpoint)?;
        let is_near = is_local(&endpoint);
        let model = draft
            .model
            .or_else(|| preset.and_then(|it| it.model))
            .or_else(|| is_near.then_some(ANY_MODEL));
        let Some(model) = model else {
            return Err(misconfigured(&format!("{path}: names no model")));
        };
        let known_as = preset.map_or(draft.provider.as_str(), |it| it.name);
        let sees = self
            .sees(&draft.provider, model)
            .or_else(|| self.sees(known_as, model));
        if sees == Some(false) {
            let words = format!("{path}: `{}` is known not to see", shown(model));
            return Err(Fault::new(FaultKind::Skipped, &words));
        }
        let listed = self.catalogue.and_then(|it| it.provider(known_as));
        Ok(Backend {
            path: path.to_owned(),
            provider: shown(&draft.provider),
            model: model.to_owned(),
            endpoint,
            key,
            twins: 0,
            api,
            timeout: draft.timeout,
            limits: ProviderLimits::of(listed.unwrap_or(known_as), model),
        })
    }

    /// The key of an entry. One of the environment goes to the provider's own host only.
    fn key(&self, draft: &Draft<'_>, endpoint: &Url) -> Result<Option<Secret>, Fault> {
        let (Some(preset), None) = (draft.preset, draft.key) else {
            return Ok(draft.key.cloned());
        };
        let own = parse(preset.endpoint);
        let is_at_home = own.is_some_and(|own| own.host_str() == endpoint.host_str());
        if !is_at_home {
            return Ok(None);
        }
        let key = self.config.vision.keys.key(preset.name).cloned();
        if key.is_none() && !preset.is_keyless {
            let variables = KeyRing::variables(preset.name).join("` or `");
            let words = format!(
                "{}: there is no key; set `api_key`, or the variable `{variables}`",
                draft.path
            );
            return Err(misconfigured(&words));
        }
        Ok(key)
    }

    /// Whether a model sees: the operator's word, then the catalogue's.
    pub(super) fn sees(&self, provider: &str, model: &str) -> Option<bool> {
        let gate = &self.config.gate;
        let main = &gate.main;
        let is_main_model = main
            .model
            .as_deref()
            .is_some_and(|it| is_same_model(it, model));
        let is_main = is_main_model && same_provider(&self.main_provider(), provider);
        let stated = || {
            let named = gate.providers.iter();
            let named = named.filter(|facts| same_provider(&facts.name, provider));
            named
                .flat_map(|facts| &facts.models)
                .find_map(|(name, it)| it.supports_vision.filter(|_| is_same_model(name, model)))
        };
        let listed = || self.catalogue.and_then(|it| it.sees(provider, model));
        main.supports_vision
            .filter(|_| is_main)
            .or_else(stated)
            .or_else(listed)
    }

    pub(super) fn facts(&self, provider: &str) -> Option<&'a ProviderFacts> {
        let mut providers = self.config.gate.providers.iter();
        providers.find(|facts| same_provider(&facts.name, provider))
    }

    pub(super) fn main_provider(&self) -> String {
        let main = &self.config.gate.main;
        let by_host = || main.base_url.as_ref().and_then(at_host).map(|it| it.name);
        let named = main.provider.as_deref().or_else(by_host);
        named.unwrap_or(CUSTOM).trim().to_owned()
    }
}

/// Whether the configuration says where the main model is.
pub(super) fn has_main(main: &MainModel) -> bool {
    main.provider.is_some() || main.base_url.is_some()
}

fn same_provider(one: &str, other: &str) -> bool {
    bare(&one.trim().to_lowercase()) == bare(&other.trim().to_lowercase())
}

fn at_host(endpoint: &Endpoint) -> Option<&'static Preset> {
    preset_at(parse(endpoint.as_str())?.host_str()?)
}

/// Host and port, as the name of a provider that has none.
fn host_of(endpoint: &Endpoint) -> String {
    let url = parse(endpoint.as_str());
    let host = url.as_ref().and_then(Url::host_str).unwrap_or(CUSTOM);
    let port = url.as_ref().and_then(Url::port);
    port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn name_of(entry: &BackendConfig) -> String {
    let provider = entry.provider.as_deref().map(shown);
    let address = entry.base_url.as_ref();
    let of_address = |url| at_host(url).map_or_else(|| host_of(url), |it| it.name.to_owned());
    let provider = provider.or_else(|| address.map(of_address));
    let model = entry.model.as_deref().map(shown);
    let or_unknown = |part: Option<String>| part.unwrap_or_else(|| "?".to_owned());
    format!("{}/{}", or_unknown(provider), or_unknown(model))
}

fn api_of(draft: &Draft<'_>, endpoint: &Url) -> Result<ApiShape, Fault> {
    if let Some(word) = draft.api {
        return ApiShape::from_word(word).ok_or_else(|| {
            misconfigured(&format!(
                "{}: `{}` is no API shape that is known",
                draft.path,
                shown(word)
            ))
        });
    }
    let path = endpoint.path().trim_end_matches('/');
    let by_path = [
        ("/chat/completions", ApiShape::OpenaiChat),
        ("/openai", ApiShape::OpenaiChat),
        ("/responses", ApiShape::OpenaiResponses),
        ("/messages", ApiShape::Anthropic),
        ("/anthropic", ApiShape::Anthropic),
        ("/anthropic/v1", ApiShape::Anthropic),
    ];
    let by_path = by_path.iter().find(|(end, _)| path.ends_with(end));
    let by_path = by_path.map(|(_, api)| *api);
    let by_preset = draft.preset.map(|it| it.api);
    Ok(by_path.or(by_preset).unwrap_or(ApiShape::OpenaiChat))
}

fn parse(text: &str) -> Option<Url> {
    let mut url = Url::parse(text.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return None;
    }
    url.set_fragment(None);
    Some(url)
}

fn misconfigured(words: &str) -> Fault {
    Fault::new(FaultKind::Misconfigured, words)
}
