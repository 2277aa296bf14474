//! Reads what describes pictures: `auxiliary.vision`, `fallback_providers`, `talaria.vision`
//! and a few keys elsewhere.

use std::time::Duration;

use http::HeaderValue;
use serde_json::{Map, Value};
use talaria_types::ServerName;
use url::Url;

use crate::defaults;
use crate::interpolate::Variables;
use crate::problem::{Findings, Problem};
use crate::schema::Kind;
use crate::section::{Section, boolean_word};
use crate::tree::{
    BackendConfig, DescribeImages, Endpoint, ImageForm, KeyRing, McpFallback, Pattern, Secret,
    VisionConfig,
};

/// Variable that names the vision model where the file does not, as in Hermes.
const MODEL_VARIABLE: &str = "AUXILIARY_VISION_MODEL";
/// Variable that limits fetching a picture and beats the file, as in Hermes.
const DOWNLOAD_VARIABLE: &str = "HERMES_VISION_DOWNLOAD_TIMEOUT";
/// The provider that is found out.
const AUTO: &str = "auto";

/// Reads everything from the root of the file.
pub(crate) fn read(
    root: &Map<String, Value>,
    variables: Variables<'_>,
    findings: &mut Findings,
) -> VisionConfig {
    let section = |name: &str| Section::new(name.to_owned(), root.get(name), variables);
    let aux = section("auxiliary").child("vision");
    let own = section("talaria").child("vision");
    let security = section("security");
    let default = VisionConfig::default();
    let mut backend = read_backend(&aux, defaults::VISION_TIMEOUT, findings);
    if backend.model.is_none() {
        let name = variables.environment.get(MODEL_VARIABLE);
        let name = name.map(|name| name.trim()).filter(|name| !name.is_empty());
        backend.model = name.map(ToOwned::to_owned);
    }
    let keys = KeyRing::of(variables.environment);
    for (variable, key) in keys.iter() {
        findings.secrets.remember(variable, key.expose());
    }
    let chain = items(&aux, "fallback_chain");
    let tools = items(&aux, "mcp_fallback");
    VisionConfig {
        fallback_chain: chain
            .iter()
            .filter(|link| link.is_map())
            .map(|link| read_backend(link, backend.timeout, findings))
            .collect(),
        mcp_fallback: tools
            .iter()
            .filter(|link| link.is_map())
            .filter_map(|link| read_tool(link, root, findings))
            .collect(),
        fallback_providers: read_providers(root, variables, backend.timeout, findings),
        aux: backend,
        keys,
        temperature: read_temperature(&aux, findings).unwrap_or(default.temperature),
        total_timeout: own
            .positive_duration(findings, "total_timeout")
            .unwrap_or(default.total_timeout),
        hedge_after: own.positive_duration(findings, "hedge_after"),
        cache_ttl: own
            .duration(findings, "cache_ttl")
            .unwrap_or(default.cache_ttl),
        max_concurrency: aux.count(findings, "max_concurrency"),
        download_timeout: read_download_timeout(&aux, variables, findings)
            .unwrap_or(default.download_timeout),
        allow_private_urls: security
            .boolean(findings, "allow_private_urls")
            .unwrap_or(false),
        allow_tun_fakeip: security
            .boolean(findings, "allow_tun_fakeip")
            .unwrap_or(false),
        describe_images: read_wish(&section("talaria").child("calls"), findings)
            .unwrap_or(default.describe_images),
    }
}

/// The entries of a list, each with its path.
fn items<'a>(section: &Section<'a>, key: &str) -> Vec<Section<'a>> {
    let values = section.get(key).and_then(Value::as_array);
    let entry = |(index, value)| {
        let path = format!("{}[{index}]", section.path(key));
        Section::new(path, Some(value), section.variables())
    };
    values
        .into_iter()
        .flatten()
        .enumerate()
        .map(entry)
        .collect()
}

/// A backend; an unset variable in its key or address makes this one unusable and no other.
fn read_backend(
    section: &Section<'_>,
    timeout: Duration,
    findings: &mut Findings,
) -> BackendConfig {
    let mut own = Findings::default();
    let base_url = read_address(section, &mut own);
    let (api_key, key_problem) = read_key(section, findings);
    let mut problems: Vec<String> = own.take_problems().iter().map(Problem::to_string).collect();
    findings.absorb_warnings(own);
    problems.extend(key_problem);
    let problem = (!problems.is_empty()).then(|| problems.join("; "));
    if let Some(problem) = &problem {
        findings.warn("", format!("{problem}; this backend is not used"));
    }
    BackendConfig {
        path: section.at().to_owned(),
        provider: section
            .word(findings, "provider")
            .filter(|word| !word.eq_ignore_ascii_case(AUTO)),
        model: section.word(findings, "model"),
        base_url,
        api_key,
        api: section.word(findings, "api_mode"),
        timeout: section
            .positive_duration(findings, "timeout")
            .unwrap_or(timeout),
        problem,
    }
}

fn read_address(section: &Section<'_>, findings: &mut Findings) -> Option<Endpoint> {
    section
        .word_of(findings, "base_url", Kind::Url)
        .and_then(|text| {
            let is_one = Url::parse(&text)
                .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            if !is_one {
                let message =
                    "must be an http or https address, such as `http://127.0.0.1:8080/v1`";
                findings.error(&section.path("base_url"), message);
            }
            is_one.then(|| Endpoint::from(text))
        })
}

/// A key from `api_key`, or from the variable that `key_env` names; the second part says why
/// there is none although one was meant.
pub(crate) fn read_key(
    section: &Section<'_>,
    findings: &mut Findings,
) -> (Option<Secret>, Option<String>) {
    let mut own = Findings::default();
    let mut path = section.path("api_key");
    let mut key = section.word_of(&mut own, "api_key", Kind::Secret);
    if key.is_none()
        && !own.has_problems()
        && let Some(name) = section.word(&mut own, "key_env")
    {
        path = section.path("key_env");
        let value = section.variables().environment.get(&name);
        match value
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
        {
            Some(value) => {
                own.secrets.remember(&name, value);
                key = Some(value.to_owned());
            }
            None => own.error(&path, format!("the variable `{name}` is not set")),
        }
    }
    if key
        .as_ref()
        .is_some_and(|key| HeaderValue::from_str(key).is_err())
    {
        own.error(&path, "holds characters a header cannot carry");
        key = None;
    }
    let problems: Vec<String> = own.take_problems().iter().map(Problem::to_string).collect();
    findings.absorb_warnings(own);
    let problem = (!problems.is_empty()).then(|| problems.join("; "));
    (key.map(Secret::from), problem)
}

/// Names of providers, or maps as in a chain; anything else is ignored, as in Hermes.
fn read_providers(
    root: &Map<String, Value>,
    variables: Variables<'_>,
    timeout: Duration,
    findings: &mut Findings,
) -> Vec<BackendConfig> {
    let whole = Section::whole(root, variables);
    let Some(value) = whole.get("fallback_providers") else {
        return Vec::new();
    };
    let Some(values) = value.as_array() else {
        findings.warn("fallback_providers", "is not a list and is ignored");
        return Vec::new();
    };
    let entries = items(&whole, "fallback_providers").into_iter().zip(values);
    let read = |(section, value): (Section<'_>, &Value)| match value {
        Value::Object(_) => Some(read_backend(&section, timeout, findings)),
        Value::String(name) if !name.trim().is_empty() => Some(BackendConfig {
            provider: Some(name.trim().to_owned()),
            timeout,
            ..BackendConfig::at(section.at())
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let message = "is neither the name of a provider nor a map and is ignored";
            findings.warn(section.at(), message);
            None
        }
    };
    entries.filter_map(read).collect()
}

fn read_tool(
    section: &Section<'_>,
    root: &Map<String, Value>,
    findings: &mut Findings,
) -> Option<McpFallback> {
    let mut needed = |key: &str| {
        let word = section.word(findings, key);
        if word.is_none() {
            findings.error(&section.path(key), "is missing");
        }
        word
    };
    let (server, tool) = (needed("server"), needed("tool"));
    if let Some(server) = &server {
        let servers = root.get("mcp_servers").and_then(Value::as_object);
        if !servers.is_some_and(|servers| servers.contains_key(server)) {
            findings.warn(
                &section.path("server"),
                format!("there is no server `{server}`"),
            );
        }
    }
    let failure_patterns = read_patterns(section, findings);
    let read = McpFallback {
        prompt_arg: section.word(findings, "prompt_arg"),
        image_arg: section.word(findings, "image_arg"),
        image_form: section
            .one_of(findings, "image_form", ImageForm::ALL, |it| it.as_str())
            .unwrap_or(ImageForm::Auto),
        timeout: section
            .positive_duration(findings, "timeout")
            .unwrap_or(defaults::MCP_FALLBACK_TIMEOUT),
        failure_patterns,
        prompt: section.word(findings, "prompt"),
        allow_remote_path: section
            .boolean(findings, "allow_remote_path")
            .unwrap_or(false),
        ..McpFallback::new(section.at(), ServerName::from(server?.as_str()), tool?)
    };
    Some(read)
}

fn read_patterns(section: &Section<'_>, findings: &mut Findings) -> Vec<Pattern> {
    let Some(texts) = section.text_list(findings, "failure_patterns") else {
        return Pattern::defaults();
    };
    let path = section.path("failure_patterns");
    let read = |(index, text): (usize, &String)| match Pattern::new(text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            findings.error(
                &format!("{path}[{index}]"),
                format!("is not a regular expression: {error}"),
            );
            None
        }
    };
    texts.iter().enumerate().filter_map(read).collect()
}

fn read_temperature(section: &Section<'_>, findings: &mut Findings) -> Option<f64> {
    let text = section.text(findings, "temperature", Kind::Number)?;
    let read = text.trim().parse::<f64>().ok();
    let read = read.filter(|number| defaults::VISION_TEMPERATURE_BOUNDS.contains(number));
    if read.is_none() {
        let bounds = defaults::VISION_TEMPERATURE_BOUNDS;
        findings.error(
            &section.path("temperature"),
            format!("must be a number, {} to {}", bounds.start(), bounds.end()),
        );
    }
    read
}

fn read_download_timeout(
    section: &Section<'_>,
    variables: Variables<'_>,
    findings: &mut Findings,
) -> Option<Duration> {
    let configured = section.positive_duration(findings, "download_timeout");
    let Some(text) = variables.environment.get(DOWNLOAD_VARIABLE) else {
        return configured;
    };
    let seconds = text.trim().parse::<f64>().ok();
    let wanted = seconds.and_then(crate::units::parse_seconds);
    let wanted = wanted.filter(|wanted| !wanted.is_zero());
    if wanted.is_none() {
        let message = format!("`{DOWNLOAD_VARIABLE}` is not a number of seconds and is ignored");
        findings.warn("", message);
    }
    wanted.or(configured)
}

/// A boolean word counts as its meaning.
fn read_wish(section: &Section<'_>, findings: &mut Findings) -> Option<DescribeImages> {
    let text = section.text(findings, "describe_images", Kind::Text)?;
    match boolean_word(&text) {
        Some(true) => Some(DescribeImages::True),
        Some(false) => Some(DescribeImages::False),
        None => section.one_of(findings, "describe_images", DescribeImages::ALL, |it| {
            it.as_str()
        }),
    }
}
