//! How many calls of one token wait or run.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use talaria_telemetry::events;
use talaria_types::{ErrorCode, Failure, TokenName};

/// Counts calls by token.
#[derive(Clone, Debug)]
pub(crate) struct TokenLimits {
    running: Arc<DashMap<TokenName, usize>>,
    limit: NonZeroUsize,
}

/// One call's place; given back on drop.
#[derive(Debug)]
pub(crate) struct TokenPlace {
    running: Arc<DashMap<TokenName, usize>>,
    token: Option<TokenName>,
}

impl TokenLimits {
    /// At most `limit` calls of each token.
    pub(crate) fn new(limit: NonZeroUsize) -> Self {
        Self {
            running: Arc::new(DashMap::new()),
            limit,
        }
    }

    /// Takes a place. Calls without a token are not counted.
    ///
    /// # Errors
    /// `busy` when the token has none left.
    pub(crate) fn admit(&self, token: Option<&TokenName>) -> Result<TokenPlace, Failure> {
        let running = Arc::clone(&self.running);
        let Some(token) = token else {
            return Ok(TokenPlace {
                running,
                token: None,
            });
        };
        {
            let mut count = self.running.entry(token.clone()).or_insert(0);
            if *count >= self.limit.get() {
                events::queue_refused("token_calls");
                return Err(Failure::new(
                    ErrorCode::Busy,
                    format!(
                        "token '{token}' has {count} calls running already; wait for one to end",
                        count = *count
                    ),
                )
                .retry_after(Duration::from_secs(1)));
            }
            *count += 1;
        }
        Ok(TokenPlace {
            running,
            token: Some(token.clone()),
        })
    }
}

impl Drop for TokenPlace {
    fn drop(&mut self) {
        let Some(token) = self.token.take() else {
            return;
        };
        if let Entry::Occupied(mut count) = self.running.entry(token) {
            *count.get_mut() = count.get().saturating_sub(1);
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_over_its_limit_is_refused_until_a_place_is_given_back() {
        let limits = TokenLimits::new(NonZeroUsize::new(2).unwrap());
        let token = TokenName::from("ci");
        let first = limits.admit(Some(&token)).unwrap();
        let _second = limits.admit(Some(&token)).unwrap();
        assert_eq!(
            limits.admit(Some(&token)).unwrap_err().code(),
            ErrorCode::Busy
        );
        assert!(limits.admit(Some(&TokenName::from("other"))).is_ok());
        drop(first);
        assert!(limits.admit(Some(&token)).is_ok());
    }

    #[test]
    fn nothing_is_kept_of_a_token_without_calls() {
        let limits = TokenLimits::new(NonZeroUsize::MIN);
        drop(limits.admit(Some(&TokenName::from("ci"))).unwrap());
        assert!(limits.running.is_empty());
        assert!(limits.admit(None).is_ok());
        assert!(limits.running.is_empty());
    }
}
