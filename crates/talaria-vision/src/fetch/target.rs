//! Which URLs are fetched at all.

use talaria_types::metadata::is_metadata_name;
use url::{Host, Url};

use super::address::{Closed, Rules, check};
use super::error::{FetchCode, FetchError};
use super::resolver::Refused;

/// Longest URL.
const MAX_URL_BYTES: usize = 8 * 1024;

/// Reads a URL and checks what can be checked before its name is resolved.
pub(super) fn read(text: &str, rules: &Rules) -> Result<Url, FetchError> {
    let text = text.trim();
    if text.len() > MAX_URL_BYTES {
        let detail = format!("the URL has more than {MAX_URL_BYTES} bytes");
        return Err(FetchError::new(FetchCode::BadUrl, detail));
    }
    // Readers of URLs do not agree about these.
    if text.chars().any(|c| c == '\\' || c.is_control()) {
        let detail = "a URL holds no backslashes and no control characters".to_owned();
        return Err(FetchError::new(FetchCode::BadUrl, detail));
    }
    let url = Url::parse(text)
        .map_err(|error| FetchError::new(FetchCode::BadUrl, format!("this is no URL: {error}")))?;
    admit(url, rules)
}

/// Reads where a redirect leads.
pub(super) fn next(from: &Url, location: &str, rules: &Rules) -> Result<Url, FetchError> {
    if location.len() > MAX_URL_BYTES {
        let detail = "a redirect leads to a URL that is too long".to_owned();
        return Err(FetchError::new(FetchCode::Unreachable, detail));
    }
    let url = from.join(location.trim()).map_err(|_no_url| {
        let detail = "a redirect leads to no URL".to_owned();
        FetchError::new(FetchCode::Unreachable, detail)
    })?;
    if from.scheme() == "https" && url.scheme() == "http" {
        let detail = "a redirect leads from https to http".to_owned();
        return Err(FetchError::new(FetchCode::Blocked, detail));
    }
    admit(url, rules)
}

fn admit(mut url: Url, rules: &Rules) -> Result<Url, FetchError> {
    let blocked = |detail: String| Err(FetchError::new(FetchCode::Blocked, detail));
    if !matches!(url.scheme(), "http" | "https") {
        return blocked("only http and https URLs are fetched".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return blocked("a URL with a user or a password is not fetched".to_owned());
    }
    let refused = match url.host() {
        None => return blocked("the URL names no host".to_owned()),
        Some(Host::Domain(name)) if is_metadata_name(name) => {
            Some(Refused::Closed(Closed::Metadata))
        }
        Some(Host::Domain(_)) => None,
        // A literal address never sees the resolver.
        Some(Host::Ipv4(address)) => check(address.into(), rules).err().map(Refused::Closed),
        Some(Host::Ipv6(address)) => check(address.into(), rules).err().map(Refused::Closed),
    };
    if let Some(refused) = refused {
        return blocked(format!("the URL is not fetched: {refused}"));
    }
    url.set_fragment(None);
    Ok(url)
}
