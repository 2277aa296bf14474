//! Exit codes of the program and the error that carries one.

use std::process::ExitCode;

use talaria_types::Failure;

/// How a command ended. The numbers are permanent and stand in `docs/cli.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Ok,
    /// A check failed, or the tool answered with an error of its own.
    CheckFailed,
    /// The command line or the configuration is wrong.
    Usage,
    /// The service does not answer.
    Unreachable,
    /// The call did not reach a result: server down, timeout, unknown tool, refused token.
    CallFailed,
    /// Talaria itself could not start or broke.
    Internal,
}

impl Exit {
    /// Every code, in numerical order.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::CheckFailed,
        Self::Usage,
        Self::Unreachable,
        Self::CallFailed,
        Self::Internal,
    ];

    /// The number handed to the shell.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::CheckFailed => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::CallFailed => 4,
            Self::Internal => 5,
        }
    }

    /// The line of the help text.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "all is well",
            Self::CheckFailed => "a check failed, or the tool answered with an error",
            Self::Usage => "the command line or the configuration is wrong",
            Self::Unreachable => "the service does not answer",
            Self::CallFailed => "the call failed: server down, timeout, unknown tool, refused",
            Self::Internal => "Talaria could not start, or broke",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

/// Why a command could not do its work: the exit code and what to say on stderr.
#[derive(Debug, thiserror::Error)]
#[error("{}", lines.join("\n"))]
pub struct CommandError {
    exit: Exit,
    lines: Vec<String>,
}

impl CommandError {
    /// The command line is wrong.
    #[must_use]
    pub fn usage(line: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            lines: vec![line.into()],
        }
    }

    /// The configuration is wrong, in so many places.
    #[must_use]
    pub const fn configuration(lines: Vec<String>) -> Self {
        Self {
            exit: Exit::Usage,
            lines,
        }
    }

    /// The service does not answer.
    #[must_use]
    pub fn unreachable(line: impl Into<String>) -> Self {
        Self {
            exit: Exit::Unreachable,
            lines: vec![line.into()],
        }
    }

    /// The call failed, as the service or a server reports it.
    #[must_use]
    pub fn call_failed(lines: Vec<String>) -> Self {
        Self {
            exit: Exit::CallFailed,
            lines,
        }
    }

    /// The exit code.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        self.exit
    }

    /// What to say, one line each.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        let mut lines = vec![format!("{}: {}", failure.code(), failure.detail())];
        if failure.is_outcome_uncertain() {
            lines.push("The call may have been executed.".to_owned());
        }
        Self {
            exit: Exit::CallFailed,
            lines,
        }
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self {
            exit: Exit::Internal,
            lines: vec![format!("{error:#}")],
        }
    }
}

#[cfg(test)]
mod tests {
    use talaria_types::ErrorCode;

    use super::{CommandError, Exit};

    #[test]
    fn numbers_count_up_from_zero() {
        let numbers: Vec<u8> = Exit::ALL.iter().map(|exit| exit.number()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn documentation_has_every_code() {
        let documentation = include_str!("../../../docs/cli.md");
        for exit in Exit::ALL {
            let row = format!("| {} | ", exit.number());
            assert!(documentation.contains(&row), "docs/cli.md lacks {row}");
        }
    }

    #[test]
    fn a_failure_exits_as_failed_call_and_says_what_is_uncertain() {
        let failure =
            talaria_types::Failure::new(ErrorCode::ConnectionLost, "it ended").outcome_uncertain();
        let error = CommandError::from(failure);
        assert_eq!(error.exit(), Exit::CallFailed);
        assert_eq!(
            error.to_string(),
            "connection_lost: it ended\nThe call may have been executed."
        );
    }

    #[test]
    fn an_unforeseen_error_exits_as_internal_with_its_chain() {
        let error = CommandError::from(anyhow::anyhow!("inner").context("outer"));
        assert_eq!(
            (error.exit(), error.to_string()),
            (Exit::Internal, "outer: inner".to_owned())
        );
    }
}
