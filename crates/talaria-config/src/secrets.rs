//! Keeps secrets out of what is shown.

use std::collections::BTreeSet;
use std::fmt;

use url::Url;

use crate::defaults::MIN_SECRET_CHARS;

mod collect;
mod names;
mod texts;

pub(crate) use names::{is_secret_name, sounds_secret};
use texts::{is_option, split_header, split_scheme};

/// What stands where a secret was.
pub(crate) const MASK: &str = "***";

/// Variables that say where things are, not who may use them.
const PLAIN_VARIABLES: [&str; 11] = [
    "HOME", "USER", "LOGNAME", "PATH", "PWD", "LANG", "SHELL", "TMPDIR", "TERM", "HOSTNAME", "TZ",
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

/// Passwords of examples and words of settings: nobody is protected by hiding them, and they
/// stand in every other text.
const COMMON_WORDS: [&str; 14] = [
    "password",
    "passw0rd",
    "password1",
    "changeme",
    "postgres",
    "minioadmin",
    "rabbitmq",
    "12345678",
    "localhost",
    "anonymous",
    "undefined",
    "disabled",
    "required",
    "optional",
];

/// Texts that must not be shown; [`fmt::Debug`] shows none of them.
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

    /// Remembers a configured secret and each long line of it, unless it is so short that it
    /// may stand in any text.
    pub(crate) fn keep(&mut self, value: &str) {
        let lines = value.lines().filter(|line| !line.starts_with("-----"));
        for text in std::iter::once(value).chain(lines) {
            let text = text.trim();
            let is_common = COMMON_WORDS
                .iter()
                .any(|word| text.eq_ignore_ascii_case(word));
            if !is_common && text.chars().count() >= MIN_SECRET_CHARS {
                self.0.insert(text.to_owned());
            }
        }
    }

    /// The texts themselves, for the one place that looks for them.
    pub fn expose(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Adds the texts of another.
    pub fn extend(&mut self, other: Self) {
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
            after_secret_flag = is_secret_flag(arg);
            if hide_whole || has_secret_prefix(arg) {
                return MASK.to_owned();
            }
            match arg.split_once('=').filter(|(name, _)| is_option(name)) {
                Some((name, _)) if sounds_secret(name) => format!("{name}={MASK}"),
                Some((name, value)) => format!("{name}={}", mask_value(value, secrets)),
                None => mask_value(arg, secrets),
            }
        })
        .collect()
}

/// Whether the argument after this one is a secret.
fn is_secret_flag(arg: &str) -> bool {
    arg.starts_with('-') && !arg.contains('=') && (sounds_secret(arg) || is_secret_name(arg))
}

fn has_secret_prefix(text: &str) -> bool {
    SECRET_PREFIXES
        .iter()
        .any(|prefix| text.starts_with(prefix))
}

fn mask_value(text: &str, secrets: &SecretValues) -> String {
    if let Some((name, value)) = split_header(text)
        && (sounds_secret(name) || split_scheme(value).is_some())
    {
        return format!("{name}: {MASK}");
    }
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
            "Authorization: Bearer b1",
            "--header=X-Api-Key:k2",
            "X-Who: Token t2",
            "--//host/:_authToken=n1",
            "redis:7",
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
            "Authorization: ***",
            "--header=X-Api-Key: ***",
            "X-Who: ***",
            "--//host/:_authToken=***",
            "redis:7",
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
