//! Fetches pictures from the network without being led into another (specification 6.1).
//!
//! Only http and https; every address of every host is checked, and what was checked is what is
//! connected to; each redirect is checked anew. A body is cut off at its limit while it comes,
//! and refused by its first bytes where it is no picture.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use talaria_config::VisionConfig;
use talaria_telemetry::events;
use talaria_types::runtime::BlockingPool;
use talaria_types::{Deadline, PayloadSink, StagedPayload};
use tokio::sync::Semaphore;
use url::Url;

mod address;
mod error;
mod resolver;
mod store;
mod target;

pub use error::{FetchCode, FetchError};
pub use resolver::{Lookup, Resolver, SystemResolver};
pub use store::LooksLikeImage;

use address::{Rules, check};
use resolver::{CheckedResolver, Refused};
use store::Intake;

/// Most bytes of a file (design decision 2).
const MAX_BYTES: u64 = 50 * 1024 * 1024;
/// Most redirects that are followed.
const MAX_HOPS: usize = 5;
/// Pauses between tries (specification 3.2); one try more than there are pauses.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(4)];
/// How long a connection may take to come about.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Pictures that are fetched at a time; more are refused.
const MAX_RUNNING: usize = 64;
/// The queue's name in metrics.
const QUEUE: &str = "picture_fetch";
/// What is asked for: pictures, and whatever a careless sender calls them.
const ACCEPTED: &str = "image/*, */*;q=0.5";
/// Longest declared type that is kept.
const MAX_TYPE_CHARS: usize = 200;

/// How pictures are fetched.
#[derive(Clone)]
pub struct FetchOptions {
    /// Private, loopback and other special addresses are open too; those of metadata services
    /// never are.
    pub allow_private: bool,
    /// The fake addresses of a tunnel (198.18.0.0/15) are open too.
    pub allow_fake_ip: bool,
    /// Limit of one picture, all tries included.
    pub timeout: Duration,
    /// Most bytes of a picture.
    pub max_bytes: u64,
    /// Who finds addresses.
    pub resolver: Arc<dyn Resolver>,
    /// Whether first bytes are those of a picture.
    pub looks_like_image: LooksLikeImage,
}

impl FetchOptions {
    /// As the configuration says, with the resolver of the system.
    #[must_use]
    pub fn new(vision: &VisionConfig, looks_like_image: LooksLikeImage) -> Self {
        Self {
            allow_private: vision.allow_private_urls,
            allow_fake_ip: vision.allow_tun_fakeip,
            timeout: vision.download_timeout,
            max_bytes: MAX_BYTES,
            resolver: Arc::new(SystemResolver),
            looks_like_image,
        }
    }
}

impl fmt::Debug for FetchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchOptions")
            .field("allow_private", &self.allow_private)
            .field("allow_fake_ip", &self.allow_fake_ip)
            .field("timeout", &self.timeout)
            .field("max_bytes", &self.max_bytes)
            .field("resolver", &self.resolver)
            .finish_non_exhaustive()
    }
}

/// A picture that was fetched, as a file that nobody has named yet.
#[derive(Debug)]
pub struct Fetched {
    /// The file.
    pub payload: StagedPayload,
    /// The type that its sender declared.
    pub declared: Option<String>,
    /// Where it was found in the end.
    pub url: String,
}

/// Fetches pictures; cheap to clone, and to be used from any loop.
#[derive(Clone, Debug)]
pub struct Fetcher(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: FetchOptions,
    rules: Arc<Rules>,
    pauses: [Duration; 2],
    client: OnceLock<Result<reqwest::Client, String>>,
    places: Semaphore,
}

/// What one try came to when it came to nothing.
enum Miss {
    /// Another try may come to more.
    Again(FetchError),
    /// No other will.
    Final(FetchError),
}

impl Fetcher {
    /// A fetcher; its first picture sets up its client.
    #[must_use]
    pub fn new(options: FetchOptions) -> Self {
        let rules = Rules {
            allow_private: options.allow_private,
            allow_fake_ip: options.allow_fake_ip,
            #[cfg(test)]
            exempt: Vec::new(),
        };
        Self::with_rules(options, rules, PAUSES)
    }

    fn with_rules(options: FetchOptions, rules: Rules, pauses: [Duration; 2]) -> Self {
        Self(Arc::new(Inner {
            options,
            rules: Arc::new(rules),
            pauses,
            client: OnceLock::new(),
            places: Semaphore::new(MAX_RUNNING),
        }))
    }

    /// Fetches a picture into the staging area.
    ///
    /// Tried again, at most twice, where the sender is overloaded, failed or could not be
    /// reached; never where the rules forbid it. Dropping the future leaves no file.
    ///
    /// # Errors
    /// The URL is not one that is fetched, nobody answers with a picture in time, or it cannot
    /// be stored.
    pub async fn fetch(
        &self,
        url: &str,
        deadline: Deadline,
        sink: &Arc<dyn PayloadSink>,
        blocking: &BlockingPool,
    ) -> Result<Fetched, FetchError> {
        let url = target::read(url, &self.0.rules)?;
        let Ok(_place) = self.0.places.try_acquire() else {
            events::queue_refused(QUEUE);
            let detail = format!("{MAX_RUNNING} pictures are being fetched already");
            return Err(FetchError::new(FetchCode::Busy, detail));
        };
        let deadline = deadline.earlier(Deadline::after(self.0.options.timeout));
        let tries = self.tries(&url, deadline, sink, blocking);
        match tokio::time::timeout_at(deadline.instant(), tries).await {
            Ok(fetched) => fetched,
            Err(_) => {
                events::deadline_exceeded("fetch");
                let detail = format!("{} did not send the picture in time", host_of(&url));
                Err(FetchError::new(FetchCode::Timeout, detail))
            }
        }
    }

    async fn tries(
        &self,
        url: &Url,
        deadline: Deadline,
        sink: &Arc<dyn PayloadSink>,
        blocking: &BlockingPool,
    ) -> Result<Fetched, FetchError> {
        let mut pauses = self.0.pauses.iter();
        loop {
            let missed = match self.follow(url.clone(), deadline, sink, blocking).await {
                Ok(fetched) => return Ok(fetched),
                Err(Miss::Final(error)) => return Err(error),
                Err(Miss::Again(error)) => error,
            };
            match pauses.next() {
                Some(pause) if *pause < deadline.remaining() => tokio::time::sleep(*pause).await,
                Some(_) | None => return Err(missed),
            }
        }
    }

    /// One try: the URL and what it redirects to.
    async fn follow(
        &self,
        mut url: Url,
        deadline: Deadline,
        sink: &Arc<dyn PayloadSink>,
        blocking: &BlockingPool,
    ) -> Result<Fetched, Miss> {
        let client = self.client()?;
        for _ in 0..=MAX_HOPS {
            let sent = client.get(url.clone()).header(ACCEPT, ACCEPTED).send();
            let response = sent.await.map_err(|error| missed(&error, &url))?;
            // The client reports whom it reached; this holds whatever the resolver did.
            let reached = response.remote_addr();
            if let Some(Err(closed)) = reached.map(|peer| check(peer.ip(), &self.0.rules)) {
                return Err(Miss::Final(blocked(Refused::Closed(closed))));
            }
            let status = response.status();
            if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                return self.receive(response, &url, deadline, sink, blocking).await;
            }
            let location = response.headers().get(LOCATION);
            let location = location.and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
            let location = location.unwrap_or_default();
            if location.trim().is_empty() {
                let detail = format!("{} redirects nowhere", host_of(&url));
                return Err(Miss::Final(FetchError::new(FetchCode::Unreachable, detail)));
            }
            url = target::next(&url, location, &self.0.rules).map_err(Miss::Final)?;
        }
        let detail = format!("the URL redirects more than {MAX_HOPS} times");
        Err(Miss::Final(FetchError::new(FetchCode::Unreachable, detail)))
    }

    async fn receive(
        &self,
        mut response: reqwest::Response,
        url: &Url,
        deadline: Deadline,
        sink: &Arc<dyn PayloadSink>,
        blocking: &BlockingPool,
    ) -> Result<Fetched, Miss> {
        let status = response.status();
        if !status.is_success() {
            let detail = format!("{} answers with status {}", host_of(url), status.as_u16());
            let error = FetchError::new(FetchCode::Unreachable, detail);
            let may_pass = status.is_server_error() || status.as_u16() == 429;
            return Err(if may_pass {
                Miss::Again(error)
            } else {
                Miss::Final(error)
            });
        }
        let declared = response.headers().get(CONTENT_TYPE);
        let declared = declared.and_then(|value| value.to_str().ok());
        let declared = declared.map(|text| text.chars().take(MAX_TYPE_CHARS).collect());
        let options = &self.0.options;
        let mut intake = Intake::new(
            sink,
            blocking,
            deadline,
            options.max_bytes,
            options.looks_like_image,
        );
        intake
            .announce(response.content_length())
            .map_err(Miss::Final)?;
        while let Some(bytes) = response
            .chunk()
            .await
            .map_err(|error| missed(&error, url))?
        {
            intake.push(&bytes).await.map_err(Miss::Final)?;
        }
        Ok(Fetched {
            payload: intake.finish().await.map_err(Miss::Final)?,
            declared,
            url: url.to_string(),
        })
    }

    fn client(&self) -> Result<&reqwest::Client, Miss> {
        let set_up = || {
            crate::tls::set_up();
            let resolver = CheckedResolver {
                inner: Arc::clone(&self.0.options.resolver),
                rules: Arc::clone(&self.0.rules),
            };
            reqwest::Client::builder()
                .no_proxy()
                .redirect(Policy::none())
                .referer(false)
                .user_agent(concat!("talaria/", env!("CARGO_PKG_VERSION")))
                .dns_resolver(Arc::new(resolver))
                .connect_timeout(CONNECT_TIME.min(self.0.options.timeout))
                // A connection that is kept is one that is not checked again.
                .pool_max_idle_per_host(0)
                .build()
                .map_err(|error| error.to_string())
        };
        self.0.client.get_or_init(set_up).as_ref().map_err(|words| {
            let detail = format!("there is no HTTP client: {words}");
            Miss::Final(FetchError::new(FetchCode::Unreachable, detail))
        })
    }
}

/// Whether a request that failed is worth another.
fn missed(error: &reqwest::Error, url: &Url) -> Miss {
    let mut cause: &(dyn Error + 'static) = error;
    while let Some(next) = cause.source() {
        cause = next;
        if let Some(refused) = cause.downcast_ref::<Refused>() {
            return Miss::Final(blocked(*refused));
        }
    }
    let host = host_of(url);
    // The last cause; the first quotes the URL, which may hold a signature.
    tracing::debug!(host, error = %cause, "a picture could not be fetched");
    let what = if error.is_connect() || error.is_timeout() {
        "cannot be reached"
    } else {
        "broke off its answer"
    };
    Miss::Again(FetchError::new(
        FetchCode::Unreachable,
        format!("{host} {what}"),
    ))
}

fn blocked(refused: Refused) -> FetchError {
    let detail = format!("the URL is not fetched: {refused}");
    FetchError::new(FetchCode::Blocked, detail)
}

fn host_of(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
