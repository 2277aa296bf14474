//! From the configuration to the chain of links (specification 3.3 and 3.4).

use talaria_config::{BackendConfig, Config};

use super::backend::{Backend, Link};
use super::preset::DISCOVERED;
use super::verdict::Fault;
use crate::Catalogue;
use crate::live_route::shown;

mod find;

use find::has_main;

/// Everybody who may be asked for a description, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chain {
    /// The links.
    pub links: Vec<Link>,
    /// Why something that was meant is no link, for the log.
    pub problems: Vec<String>,
}

impl Chain {
    /// The chain of a configuration.
    ///
    /// A model that is known to be blind is never asked: an entry that names one is a broken
    /// link. Without a catalogue nothing is known.
    #[must_use]
    pub fn resolve(config: &Config, catalogue: Option<&Catalogue>) -> Self {
        let resolver = Resolver { config, catalogue };
        resolver.chain()
    }

    /// Whether anybody was configured or found. A chain of broken links counts: it fails with
    /// its reasons.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        !self.links.is_empty()
    }

    /// Adds a link, unless it is there. Who has the name of another one gets a number.
    fn push(&mut self, mut link: Link) {
        let is_there = match &link {
            Link::Http(new) => self
                .links
                .iter()
                .any(|known| matches!(known, Link::Http(known) if known.is_same(new))),
            Link::Mcp(_) | Link::Broken { .. } => false,
        };
        if is_there {
            return;
        }
        if let Link::Http(new) = &mut link {
            let namesakes = self
                .links
                .iter()
                .filter(|known| matches!(known, Link::Http(known) if known.is_namesake(new)));
            new.twins = namesakes.count();
        }
        self.links.push(link);
    }

    /// Adds what nobody named: a problem there is no link.
    fn push_found(&mut self, found: Result<Backend, Fault>, what: &str) {
        match found {
            Ok(backend) => self.push(Link::Http(backend)),
            Err(fault) => self.problems.push(format!("{what}: {}", fault.words)),
        }
    }
}

struct Resolver<'a> {
    config: &'a Config,
    catalogue: Option<&'a Catalogue>,
}

impl Resolver<'_> {
    fn chain(&self) -> Chain {
        let vision = &self.config.vision;
        let mut chain = Chain::default();
        let is_off = vision.aux.is_off();
        let is_auto = vision.aux.provider.is_none()
            && vision.aux.base_url.is_none()
            && vision.aux.problem.is_none();
        let mut discovered = Vec::new();
        if is_auto {
            if vision.aux.api_key.is_some() {
                let note = "auxiliary.vision.api_key: has no effect without a provider or base_url";
                chain.problems.push(note.to_owned());
            }
            discovered = self.discover(&mut chain);
            if !discovered.is_empty() {
                chain.push(Link::Http(discovered.remove(0)));
            }
        } else if !is_off {
            chain.push(self.entry(&vision.aux));
        }
        for entry in &vision.fallback_chain {
            chain.push(self.entry(entry));
        }
        if is_auto {
            for entry in &vision.fallback_providers {
                chain.push(self.entry(entry));
            }
            for backend in discovered {
                chain.push(Link::Http(backend));
            }
        } else if !is_off {
            self.push_main_if_it_sees(&mut chain);
        }
        for tool in &vision.mcp_fallback {
            chain.push(Link::Mcp(tool.clone()));
        }
        chain
    }

    /// `provider: auto`: the main provider, then those of which a key is known.
    fn discover(&self, chain: &mut Chain) -> Vec<Backend> {
        let aux = &self.config.vision.aux;
        let mut wished = aux.model.as_deref();
        let mut found: Vec<Backend> = Vec::new();
        let mut add = |backend: Result<Backend, Fault>, what: &str, chain: &mut Chain| match backend
        {
            Ok(backend) => {
                if !found.iter().any(|known| known.shares_account(&backend)) {
                    found.push(backend);
                }
                true
            }
            Err(fault) => {
                chain.problems.push(format!("{what}: {}", fault.words));
                false
            }
        };
        if has_main(&self.config.gate.main) {
            let main = self.main(wished, aux.timeout);
            if add(main, "the main model does not describe images", chain) {
                wished = None;
            }
        }
        for name in DISCOVERED {
            let has_key = self.config.vision.keys.key(name).is_some()
                || self
                    .facts(name)
                    .is_some_and(|facts| facts.api_key.is_some());
            if !has_key {
                continue;
            }
            let entry = BackendConfig {
                provider: Some(name.to_owned()),
                model: wished.map(ToOwned::to_owned),
                timeout: aux.timeout,
                ..BackendConfig::at(name)
            };
            if add(self.backend(&entry), name, chain) {
                wished = None;
            }
        }
        found
    }

    /// The main model as the last model of a chain that names its backend: only where it is
    /// known to see (specification 3.4, V09).
    fn push_main_if_it_sees(&self, chain: &mut Chain) {
        let main = &self.config.gate.main;
        let (Some(model), true) = (main.model.as_deref(), has_main(main)) else {
            return;
        };
        let provider = self.main_provider();
        if self.sees(&provider, model) != Some(true) {
            let note = format!("the main model `{}` is not known to see", shown(model));
            chain.problems.push(note);
            return;
        }
        let backend = self.main(Some(model), self.config.vision.aux.timeout);
        chain.push_found(backend, "the main model does not describe images");
    }
}

#[cfg(test)]
mod tests;
