//! Who describes pictures, as commands show it.

use serde::Serialize;
use talaria_config::{Config, Endpoint};
use talaria_vision::Catalogue;
use talaria_vision::describe::{Chain, Link};

use crate::table::Table;

/// The chain of a configuration.
#[derive(Debug, Serialize)]
pub struct Describers {
    /// The links, in the order in which they are asked.
    pub links: Vec<Describer>,
    /// Why something that was meant is no link.
    pub notes: Vec<String>,
}

/// One link of the chain.
#[derive(Debug, Serialize)]
pub struct Describer {
    /// As answers name it.
    pub via: String,
    /// `http`, `mcp` or `broken`.
    pub kind: &'static str,
    /// Where it stands in the configuration, or how it was found.
    pub path: Option<String>,
    /// Endpoint, without secrets.
    pub endpoint: Option<String>,
    /// Limit of one attempt.
    pub timeout_ms: u64,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

impl Describers {
    /// Those of a configuration.
    #[must_use]
    pub fn of(config: &Config, catalogue: Option<&Catalogue>) -> Self {
        let Chain { links, problems } = Chain::resolve(config, catalogue);
        Self {
            links: links
                .iter()
                .map(|link| Describer::of(link, config))
                .collect(),
            notes: problems,
        }
    }

    /// Links that can never answer.
    pub fn broken(&self) -> impl Iterator<Item = &str> {
        self.links.iter().filter_map(|link| link.problem.as_deref())
    }

    /// The names of those that can be asked, in order, in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let usable = self.links.iter().filter(|link| link.problem.is_none());
        let names: Vec<_> = usable.map(|link| link.via.as_str()).collect();
        if names.is_empty() {
            return "nobody".to_owned();
        }
        names.join(", then ")
    }

    /// As people read it.
    #[must_use]
    pub fn render(&self) -> String {
        let mut table = Table::new(&["WHO DESCRIBES", "LIMIT", "ENDPOINT", "FROM"]);
        for link in &self.links {
            let what = link.problem.as_ref().or(link.endpoint.as_ref());
            table.row(&[
                link.via.clone(),
                format!("{} s", link.timeout_ms / 1_000),
                what.cloned().unwrap_or_default(),
                link.path.clone().unwrap_or_default(),
            ]);
        }
        if self.links.is_empty() {
            let key = "auxiliary.vision";
            table.row(&[
                "nobody".to_owned(),
                String::new(),
                String::new(),
                format!("set {key}"),
            ]);
        }
        let mut text = table.render();
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        text
    }
}

impl Describer {
    fn of(link: &Link, config: &Config) -> Self {
        let (kind, path, endpoint, problem) = match link {
            Link::Http(backend) => {
                let endpoint = Endpoint::from(backend.endpoint.to_string()).masked();
                ("http", Some(backend.path.clone()), Some(endpoint), None)
            }
            Link::Mcp(tool) => {
                let problem = (!config.servers.contains_key(&tool.server)).then(|| {
                    let (path, server) = (&tool.path, &tool.server);
                    format!("{path}.server: there is no server `{server}` in mcp_servers")
                });
                ("mcp", Some(tool.path.clone()), None, problem)
            }
            Link::Broken { fault, .. } => ("broken", None, None, Some(fault.words.clone())),
        };
        Self {
            via: link.via(),
            kind,
            path,
            endpoint,
            timeout_ms: u64::try_from(link.timeout().as_millis()).unwrap_or(u64::MAX),
            problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use talaria_config::{BackendConfig, Config, Endpoint, McpFallback, ServerConfig, ServerEntry};

    use super::Describers;

    #[test]
    fn a_chain_is_told_in_order_without_its_secrets() {
        let mut config = Config::with_home("/h".into());
        assert_eq!(Describers::of(&config, None).line(), "nobody");
        config.vision.aux = BackendConfig {
            base_url: Some(Endpoint::from("http://me:hunter22@h:1/v1".to_owned())),
            model: Some("m".to_owned()),
            ..BackendConfig::at("auxiliary.vision")
        };
        let path = "auxiliary.vision.mcp_fallback[0]";
        config.vision.mcp_fallback = vec![McpFallback::new(path, "eyes", "look")];
        let told = Describers::of(&config, None);
        assert!(told.line().ends_with("/m"), "{told:?}");
        let text = told.render();
        assert!(
            !text.contains("hunter22") && text.contains("@h:1/v1"),
            "{text}"
        );
        let missing = format!("{path}.server: there is no server `eyes` in mcp_servers");
        assert_eq!(told.broken().collect::<Vec<_>>(), [missing]);

        let eyes = ServerConfig::stdio("eyes", "eyes", [""; 0]);
        let entry = ServerEntry::Usable(Box::new(eyes));
        config.servers.insert("eyes".into(), entry);
        let told = Describers::of(&config, None);
        assert_eq!(told.broken().count(), 0);
        assert!(told.line().ends_with("/m, then mcp:eyes/look"), "{told:?}");
    }
}
