//! `talaria reload`.

use serde_json::json;
use talaria_actors::ReloadReport;

use super::Surroundings;
use crate::arguments::ReloadArguments;
use crate::client::ServiceClient;
use crate::exit::{CommandError, Exit};

/// Has the service read its configuration again; exit code 1 if an entry cannot be used.
pub(super) async fn run(
    surroundings: &Surroundings,
    arguments: ReloadArguments,
) -> Result<Exit, CommandError> {
    let _log = surroundings.quiet_log()?;
    let url = arguments.url.as_deref();
    let client = ServiceClient::from_environment(url, &surroundings.environment)?;
    let report: ReloadReport = client.post_json("/v1/reload", &json!({})).await?;
    surroundings.output.print(&report, render)?;
    Ok(if report.broken.is_empty() {
        Exit::Ok
    } else {
        Exit::CheckFailed
    })
}

fn render(report: &ReloadReport) -> String {
    let mut text = String::new();
    for (what, servers) in [
        ("added", &report.added),
        ("changed", &report.changed),
        ("removed", &report.removed),
    ] {
        if !servers.is_empty() {
            text.push_str(&format!("{what}: {}\n", servers.join(", ")));
        }
    }
    if report.is_quiet() {
        text.push_str("No server changed.\n");
    }
    text.push_str(&format!("unchanged: {}\n", report.unchanged));
    for broken in &report.broken {
        let fate = if broken.kept {
            "goes on as before"
        } else {
            "is not started"
        };
        text.push_str(&format!(
            "BROKEN {} {fate}: {}\n",
            broken.server, broken.problem
        ));
    }
    for key in &report.restart_required {
        text.push_str(&format!("after a restart: {key}\n"));
    }
    for warning in &report.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use talaria_actors::{BrokenServer, ReloadReport};

    use super::render;

    #[test]
    fn what_changed_and_what_did_not_is_told() {
        let report = ReloadReport {
            changed: vec!["a".to_owned(), "b".to_owned()],
            unchanged: 3,
            broken: vec![BrokenServer {
                server: "c".to_owned(),
                problem: "mcp_servers.c.command: is missing".to_owned(),
                kept: true,
            }],
            restart_required: vec!["talaria.listen".to_owned()],
            ..ReloadReport::default()
        };
        assert_eq!(
            render(&report),
            "changed: a, b\nunchanged: 3\n\
             BROKEN c goes on as before: mcp_servers.c.command: is missing\n\
             after a restart: talaria.listen\n"
        );
        let nothing = ReloadReport::default();
        assert_eq!(render(&nothing), "No server changed.\nunchanged: 0\n");
    }
}
