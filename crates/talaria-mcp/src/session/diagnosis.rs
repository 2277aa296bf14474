//! What the last words of a process that did not start say of the next attempt.

/// Words of Node where a native module was built for another Node: it fails until somebody builds
/// it again.
const FOREIGN_MODULE: [&str; 2] = ["NODE_MODULE_VERSION", "ERR_DLOPEN_FAILED"];

/// The cause of a failure that another attempt does not mend (specification 4.2).
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a native module of the server does not fit the Node that runs it")]
pub struct ForeignModule;

impl ForeignModule {
    /// What an operator does about it.
    pub(super) const ADVICE: &str = "a native module it loads does not fit the Node that runs it; \
                                     rebuild it (`npm rebuild`), reinstall the server, or start \
                                     it with the Node it was installed with";

    /// Looks for it in what the process wrote last.
    pub(super) fn in_words(words: &str) -> Option<Self> {
        let is_meant = FOREIGN_MODULE.iter().any(|word| words.contains(word));
        is_meant.then_some(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_for_another_node_is_told_from_other_ends() {
        for (words, expected) in [
            (
                "Error: The module '/x/better_sqlite3.node'\nwas compiled against a different \
                 Node.js version using\nNODE_MODULE_VERSION 108. This version of Node.js requires",
                true,
            ),
            ("    at Module.load\n  code: 'ERR_DLOPEN_FAILED'\n}", true),
            (
                "Error: Cannot find module 'x'\n  code: 'MODULE_NOT_FOUND'",
                false,
            ),
            ("", false),
        ] {
            assert_eq!(
                ForeignModule::in_words(words).is_some(),
                expected,
                "{words}"
            );
        }
    }
}
