//! Keeps secrets out of what is shown.

use std::collections::BTreeSet;
use std::fmt;

use url::Url;

/// What stands where a secret was.
pub(crate) const MASK: &str = "***";

/// Variables that say where things are, not who may use them.
const PLAIN_VARIABLES: [&str; 11] = [
    "HOME", "USER", "LOGNAME", "PATH", "PWD", "LANG", "SHELL", "TMPDIR", "TERM", "HOSTNAME", "TZ",
];

/// Words in the name of an argument or a query key that announce a secret.
const SECRET_WORDS: [&str; 8] = [
    "token",
    "secret",
    "password",
    "passwd",
    "key",
    "auth",
    "credential",
    "bearer",
];

/// Beginnings of well-known kinds of secrets.
const SECRET_PREFIXES: [&str; 8] = [
    "sk-",
    "ghp_",
    "gho_",
    "github_pat_",
    "xoxb-",
    "xoxp-",
    "glpat-",
    "Bearer ",
];

/// Values that came out of the environment; anything that holds one is shown masked.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretValues(BTreeSet<String>);

impl SecretValues {
    /// Remembers the value of a variable, unless it is a plain one.
    pub(crate) fn remember(&mut self, variable: &str, value: &str) {
        let is_plain = PLAIN_VARIABLES.contains(&variable) || variable.starts_with("XDG_");
        if !is_plain && value.chars().count() > 3 {
            self.0.insert(value.to_owned());
        }
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The text with every remembered value masked.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        // Longest first, so that a value inside another does not leave the rest of it.
        let mut values: Vec<&String> = self.0.iter().collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.into_iter().fold(text.to_owned(), |text, value| {
            text.replace(value.as_str(), MASK)
        })
    }
}

impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretValues({} hidden)", self.0.len())
    }
}

/// Arguments with what looks like a secret masked.
pub(crate) fn mask_args(args: &[String], secrets: &SecretValues) -> Vec<String> {
    let mut after_secret_flag = false;
    args.iter()
        .map(|arg| {
            let hide_whole = after_secret_flag && !arg.starts_with('-');
            after_secret_flag = arg.starts_with('-') && !arg.contains('=') && is_secret_name(arg);
            if hide_whole || SECRET_PREFIXES.iter().any(|prefix| arg.starts_with(prefix)) {
                return MASK.to_owned();
            }
            match arg
                .split_once('=')
                .filter(|(name, _)| !name.contains("://"))
            {
                Some((name, _)) if is_secret_name(name) => format!("{name}={MASK}"),
                Some((name, value)) => format!("{name}={}", mask_value(value, secrets)),
                None => mask_value(arg, secrets),
            }
        })
        .collect()
}

fn mask_value(text: &str, secrets: &SecretValues) -> String {
    if text.contains("://") {
        secrets.mask(&mask_url(text))
    } else {
        secrets.mask(text)
    }
}

/// An address with user, password and the values of its query masked.
pub(crate) fn mask_url(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return MASK.to_owned();
    };
    let has_user = !url.username().is_empty() || url.password().is_some();
    if has_user && (url.set_username(MASK).is_err() || url.set_password(None).is_err()) {
        return MASK.to_owned();
    }
    if url.query().is_some() {
        let names: Vec<String> = url
            .query_pairs()
            .map(|(name, _)| format!("{name}={MASK}"))
            .collect();
        url.set_query(Some(&names.join("&")));
    }
    url.set_fragment(None);
    url.to_string()
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_look_secret_are_masked() {
        let mut secrets = SecretValues::default();
        secrets.remember("SOME_ID", "abcd1234");
        secrets.remember("HOME", "/home/me");
        let args = [
            "-y",
            "--api-key",
            "k1",
            "--token=t1",
            "sk-live",
            "x-abcd1234-y",
            "/home/me/a",
            "postgres://u:p@h/db?password=q",
            "--verbose",
            "plain",
        ];
        let shown = mask_args(&args.map(ToOwned::to_owned), &secrets);
        let expected = [
            "-y",
            "--api-key",
            "***",
            "--token=***",
            "***",
            "x-***-y",
            "/home/me/a",
            "postgres://***@h/db?password=***",
            "--verbose",
            "plain",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn addresses_lose_user_query_and_fragment() {
        let shown = mask_url("https://me:pw@host/mcp?key=abc&x=1#frag");
        assert_eq!(shown, "https://***@host/mcp?key=***&x=***");
        assert_eq!(mask_url("https://host/mcp"), "https://host/mcp");
        assert_eq!(mask_url("not an address"), "***");
    }
}
