//! A real Prometheus server that scrapes the service while it is under load.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use talaria_testkit::wait::wait_for;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// A running server; killed when dropped.
#[derive(Debug)]
pub struct Prometheus {
    _child: Child,
    _folder: TempDir,
    base: String,
    client: reqwest::Client,
}

impl Prometheus {
    /// Starts `prometheus` with a scrape configuration for one target, `host:port`.
    ///
    /// # Errors
    /// It is not installed, or does not get ready.
    pub async fn start(target: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let config = folder.path().join("prometheus.yml");
        std::fs::write(
            &config,
            format!(
                "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\n\
                 scrape_configs:\n  - job_name: talaria\n    static_configs:\n      - targets: ['{target}']\n"
            ),
        )?;
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--log.level=error")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("prometheus is not installed: run .ci/debian prometheus")?;
        let this = Self {
            _child: child,
            _folder: folder,
            base: format!("http://127.0.0.1:{port}"),
            client: talaria_testkit::service::http_client()?,
        };
        wait_for(
            "Prometheus to be ready",
            Duration::from_secs(30),
            || async {
                let answer = this
                    .client
                    .get(format!("{}/-/ready", this.base))
                    .send()
                    .await;
                match answer {
                    Ok(answer) if answer.status().is_success() => Ok(()),
                    Ok(answer) => Err(answer.status().to_string()),
                    Err(error) => Err(error.to_string()),
                }
            },
        )
        .await?;
        Ok(this)
    }

    /// The sum of an expression over all its series; `None` where there is none.
    ///
    /// # Errors
    /// The query fails.
    pub async fn sum(&self, expression: &str) -> anyhow::Result<Option<f64>> {
        let url = reqwest::Url::parse_with_params(
            &format!("{}/api/v1/query", self.base),
            &[("query", format!("sum({expression})"))],
        )?;
        let answer: Value =
            serde_json::from_slice(&self.client.get(url).send().await?.bytes().await?)?;
        ensure!(
            answer["status"] == "success",
            "query {expression}: {answer}"
        );
        answer["data"]["result"][0]["value"][1]
            .as_str()
            .map(|value| {
                value
                    .parse()
                    .with_context(|| format!("value of {expression}: {value}"))
            })
            .transpose()
    }

    /// Waits until Prometheus has scraped so many samples of the target.
    ///
    /// # Errors
    /// It does not.
    pub async fn wait_scraped(&self) -> anyhow::Result<()> {
        wait_for(
            "Prometheus to scrape the service",
            Duration::from_secs(20),
            || async {
                match self.sum("up{job='talaria'}").await {
                    Ok(Some(up)) if up > 0.5 => Ok(()),
                    Ok(other) => Err(format!("up is {other:?}")),
                    Err(error) => Err(error.to_string()),
                }
            },
        )
        .await
    }
}
