//! Sessions with real child processes, all of them `/bin/sh`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Map;
use talaria_config::TransportConfig;
use talaria_testkit::wait_for;
use talaria_types::{Deadline, ErrorCode, Failure, RawResult, runtime};

use crate::session::{ClosedBy, ConnectOptions, Rpc, Session, connect};
use crate::testing::{FolderSink, limits, options};

/// The old handshake in the shell: rmcp counts its requests from zero.
const HANDSHAKE: &str = r#"
read -r discover
echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}'
read -r initialize
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}'
read -r initialized
"#;

fn server(folder: &Path, program: &str) -> ConnectOptions {
    let transport = TransportConfig::Stdio {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), program.to_owned()],
        env: BTreeMap::from([("OWN".to_owned(), "own".to_owned())]),
        cwd: Some(folder.to_path_buf()),
    };
    let (mut options, _events) = options(transport, FolderSink::new());
    options.stderr_log = folder.join("stderr.log");
    let mut environment = (*options.environment).clone();
    environment.insert("OPENAI_API_KEY".to_owned(), "secret".to_owned());
    options.environment = Arc::new(environment);
    options
}

async fn connected(folder: &Path, rest: &str) -> Session {
    connect(server(folder, &format!("{HANDSHAKE}{rest}")))
        .await
        .unwrap()
}

async fn call(session: &Session) -> Result<RawResult, Failure> {
    let rpc = Rpc::CallTool {
        name: "t".to_owned(),
        arguments: Map::new(),
    };
    session.request(rpc, limits()).await
}

async fn text_of(path: &Path) -> String {
    let read = wait_for("a file", Duration::from_secs(10), || {
        let text = std::fs::read_to_string(path).ok();
        std::future::ready(text.filter(|text| text.ends_with('\n')).ok_or("not there"))
    });
    read.await.unwrap()
}

async fn pid_in(path: &Path) -> u32 {
    text_of(path).await.trim().parse().unwrap()
}

/// Whether a process runs; one that only waits to be reaped does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, None | Some(None | Some('Z' | 'X')))
}

async fn gone(pid: u32) {
    let gone = wait_for("the end of a process", Duration::from_secs(5), || {
        std::future::ready(if runs(pid) { Err("it runs") } else { Ok(()) })
    });
    gone.await.unwrap();
}

#[tokio::test]
async fn only_allowed_variables_reach_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let session = connected(folder.path(), "env > env.txt; echo >> env.txt; cat").await;
    let text = text_of(&folder.path().join("env.txt")).await;
    assert!(text.contains("OWN=own\n"), "{text}");
    assert!(text.contains("PATH="), "{text}");
    assert!(!text.contains("secret"), "{text}");
    assert!(!text.contains("CARGO"), "{text}");
    session.close(Deadline::after(Duration::from_secs(5))).await;
}

#[tokio::test]
async fn a_server_that_leaves_when_its_input_ends_is_not_killed() {
    let folder = tempfile::tempdir().unwrap();
    let session = connected(folder.path(), "cat > /dev/null; echo bye > bye.txt").await;
    let pid = session.peer().pid.unwrap();
    session.close(Deadline::after(Duration::from_secs(5))).await;
    assert!(!runs(pid));
    assert_eq!(
        std::fs::read_to_string(folder.path().join("bye.txt")).unwrap(),
        "bye\n"
    );
    assert_eq!(session.closed().await, ClosedBy::Us);
}

#[tokio::test]
async fn the_whole_group_goes_even_if_it_ignores_signals() {
    let folder = tempfile::tempdir().unwrap();
    let stubborn = "trap '' TERM HUP INT; (trap '' TERM HUP INT; echo $$ > leader; \
                    sh -c 'trap \"\" TERM HUP; echo $$ > grandchild; while :; do sleep 1; done' & \
                    while :; do sleep 1; done)";
    let session = connected(folder.path(), stubborn).await;
    let grandchild = pid_in(&folder.path().join("grandchild")).await;
    let pid = session.peer().pid.unwrap();
    assert!(runs(grandchild) && runs(pid));
    let began = runtime::now();
    session.close(Deadline::after(Duration::from_secs(1))).await;
    assert!(runtime::now().duration_since(began) < Duration::from_secs(2));
    gone(pid).await;
    gone(grandchild).await;
}

#[tokio::test]
async fn a_grandchild_goes_with_a_server_that_ends_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let rest = "sh -c 'trap \"\" TERM HUP; echo $$ > grandchild; exec sleep 1000' & \
                read -r call; exit 3";
    let session = connected(folder.path(), rest).await;
    let grandchild = pid_in(&folder.path().join("grandchild")).await;
    let began = runtime::now();
    let failure = call(&session).await.unwrap_err();
    assert!(runtime::now().duration_since(began) < Duration::from_secs(1));
    assert_eq!(failure.code(), ErrorCode::ConnectionLost);
    assert!(failure.is_outcome_uncertain());
    assert_eq!(
        failure.detail(),
        "server 'odd': its process ended (exit status: 3)"
    );
    let ClosedBy::ChildExit(status) = session.closed().await else {
        panic!("not an exit");
    };
    assert_eq!(status, "exit status: 3");
    gone(grandchild).await;
}

#[tokio::test]
async fn a_killed_server_fails_its_calls_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let session = connected(folder.path(), "read -r call; kill -9 $$").await;
    let began = runtime::now();
    let failure = call(&session).await.unwrap_err();
    assert!(runtime::now().duration_since(began) < Duration::from_secs(1));
    assert!(failure.is_outcome_uncertain());
    assert!(
        failure.detail().contains("signal: 9"),
        "{}",
        failure.detail()
    );
}

#[tokio::test]
async fn what_a_server_says_before_it_ends_still_counts() {
    let folder = tempfile::tempdir().unwrap();
    let rest = r#"read -r call; echo '{"jsonrpc":"2.0","id":2,"result":{"last":1}}'; exit 0"#;
    let session = connected(folder.path(), rest).await;
    assert_eq!(call(&session).await.unwrap().json["last"], 1);
}

#[tokio::test]
async fn dropping_the_session_ends_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let session = connected(folder.path(), "trap '' TERM; while :; do sleep 1; done").await;
    let pid = session.peer().pid.unwrap();
    drop(session);
    gone(pid).await;
}

#[test]
fn the_end_of_the_event_loop_ends_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let loop_of = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let event_loop = loop_of();
    let rest = "sh -c 'trap \"\" TERM; echo $$ > grandchild; while :; do sleep 1; done' & cat";
    let session = event_loop.block_on(connected(folder.path(), rest));
    let grandchild = event_loop.block_on(pid_in(&folder.path().join("grandchild")));
    let pid = session.peer().pid.unwrap();
    drop(event_loop);
    loop_of().block_on(async {
        gone(pid).await;
        gone(grandchild).await;
    });
    drop(session);
}

#[tokio::test]
async fn a_server_that_ends_during_the_handshake_is_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let program = "echo 'MINIMAX_API_KEY is not set' >&2; exit 7";
    let failure = connect(server(folder.path(), program)).await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectFailed);
    assert!(
        failure.detail().contains("exit status: 7"),
        "{}",
        failure.detail()
    );
    assert_eq!(failure.server_words(), Some("MINIMAX_API_KEY is not set"));
    let log = text_of(&folder.path().join("stderr.log")).await;
    assert!(log.contains("odd started, pid"), "{log}");
    assert!(log.contains("MINIMAX_API_KEY is not set\n"), "{log}");
}

#[tokio::test]
async fn a_failed_connect_leaves_nothing_running() {
    let folder = tempfile::tempdir().unwrap();
    let program = "trap '' TERM; echo $$ > pid; while :; do sleep 1; done";
    let mut options = server(folder.path(), program);
    options.deadline = Deadline::after(Duration::from_secs(1));
    let failure = connect(options).await.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ConnectTimeout);
    assert!(!runs(pid_in(&folder.path().join("pid")).await));
}

#[tokio::test]
async fn a_server_that_dies_of_discover_is_started_again_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = r#"
read -r first
case "$first" in *discover*) exit 1;; esac
echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}'
cat > /dev/null
"#;
    let session = connect(server(folder.path(), program)).await.unwrap();
    assert_eq!(session.peer().protocol_version, "2024-11-05");
}

#[tokio::test]
async fn a_flood_on_stderr_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let rest = r#"
(while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done >&2) &
while read -r call; do
  case "$call" in *tools/call*) id=$((${id:-1} + 1)); echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}";; esac
done
"#;
    let mut options = server(folder.path(), &format!("{HANDSHAKE}{rest}"));
    options.stderr_log_bytes = 256 * 1024;
    let session = connect(options).await.unwrap();
    for _ in 0..20 {
        assert!(call(&session).await.is_ok());
    }
    session.close(Deadline::after(Duration::from_secs(5))).await;
    let size = std::fs::metadata(folder.path().join("stderr.log"))
        .unwrap()
        .len();
    assert!(size <= 256 * 1024, "{size}");
}

#[tokio::test]
async fn a_server_that_reads_nothing_delays_no_timeout_and_no_close() {
    let folder = tempfile::tempdir().unwrap();
    let session = connected(folder.path(), "trap '' TERM; while :; do sleep 1; done").await;
    let huge = Map::from_iter([("x".to_owned(), "y".repeat(1_000_000).into())]);
    let rpc = Rpc::CallTool {
        name: "t".to_owned(),
        arguments: huge,
    };
    let began = runtime::now();
    let mut limits = limits();
    limits.idle = Duration::from_millis(200);
    assert_eq!(
        session.request(rpc, limits).await.unwrap_err().code(),
        ErrorCode::Timeout
    );
    session
        .close(Deadline::after(Duration::from_millis(500)))
        .await;
    assert!(runtime::now().duration_since(began) < Duration::from_secs(3));
}

#[tokio::test]
async fn a_server_that_takes_its_time_to_leave_gets_it() {
    let folder = tempfile::tempdir().unwrap();
    let rest =
        "trap 'echo termed > termed.txt' TERM; cat > /dev/null; sleep 1.5; echo bye > bye.txt";
    let session = connected(folder.path(), rest).await;
    session
        .close(Deadline::after(Duration::from_secs(10)))
        .await;
    assert!(folder.path().join("bye.txt").exists());
    assert!(!folder.path().join("termed.txt").exists());
    assert_eq!(session.closed().await, ClosedBy::Us);
}
