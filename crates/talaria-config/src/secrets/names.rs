//! Which names announce a secret.

/// What the name of a secret holds.
const PARTS: [&str; 8] = [
    "token",
    "secret",
    "password",
    "passwd",
    "key",
    "auth",
    "credential",
    "bearer",
];

/// Words of a name that announce a secret.
const WORDS: [&str; 20] = [
    "token",
    "tokens",
    "secret",
    "secrets",
    "password",
    "pass",
    "passwd",
    "passphrase",
    "pwd",
    "pat",
    "key",
    "keys",
    "apikey",
    "auth",
    "authorization",
    "credential",
    "credentials",
    "bearer",
    "cookie",
    "jwt",
];

/// Last words of names that say where a secret is or what kind it has, and hold none.
const PLAIN_ENDINGS: [&str; 24] = [
    "path",
    "file",
    "dir",
    "directory",
    "folder",
    "url",
    "uri",
    "host",
    "endpoint",
    "id",
    "name",
    "type",
    "kind",
    "method",
    "mode",
    "header",
    "prefix",
    "scope",
    "scopes",
    "ttl",
    "timeout",
    "expiry",
    "enabled",
    "algorithm",
];

/// Whether a name may belong to a secret: what is shown errs on this side.
pub(crate) fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part))
}

/// Whether a name says that its value is a secret: what is looked for in every text errs on the
/// other side.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let is_plain = words
        .last()
        .is_some_and(|last| PLAIN_ENDINGS.contains(&last.as_str()));
    !is_plain && words.iter().any(|word| WORDS.contains(&word.as_str()))
}

/// The words of `API_KEY`, `x-api-key`, `apiKey` and `APIKey`, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut letters = name.chars().peekable();
    let mut before = None;
    while let Some(letter) = letters.next() {
        let starts_word = letter.is_ascii_uppercase()
            && (before.is_some_and(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                || before.is_some_and(|c: char| c.is_ascii_uppercase())
                    && letters.peek().is_some_and(char::is_ascii_lowercase));
        if (starts_word || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        before = Some(letter);
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_by_their_words() {
        for name in [
            "API_KEY",
            "apiKey",
            "OPENAIApiKey",
            "x-api-key",
            "Authorization",
            "GITHUB_PERSONAL_ACCESS_TOKEN",
            "DB_PASSWORD",
            "SMTP_PASS",
            "SESSION_JWT",
            "GITLAB_PAT",
            "Cookie",
            "client-secret",
            "KEY",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "AUTHOR",
            "KEYBOARD_LAYOUT",
            "MONKEY",
            "SSH_KEY_PATH",
            "TOKEN_URL",
            "AWS_ACCESS_KEY_ID",
            "OAUTH_SCOPES",
            "PATH",
            "Accept",
            "tokenizer",
            "compass",
            "",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
