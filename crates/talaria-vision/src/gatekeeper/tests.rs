//! Decisions from a configuration and a route.

use std::collections::BTreeMap;
use std::time::Duration;

use talaria_config::{Source, load};

use super::*;

fn config(text: &str) -> Config {
    let environment = BTreeMap::from([("HOME".to_owned(), "/home/me".to_owned())]);
    load(text, &environment, &Source::default()).unwrap()
}

fn route(provider: &str, model: &str) -> Route {
    Route {
        provider: provider.to_owned(),
        model: model.to_owned(),
        api: None,
    }
}

fn question<'a>(route: Option<&'a Route>) -> GateQuestion<'a> {
    GateQuestion {
        route,
        session: None,
        mode: None,
        api: None,
        source: ImageSource::Mcp,
    }
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(5))
}

/// The decision of a fresh gatekeeper for one route.
async fn decide(text: &str, provider: &str, model: &str) -> Decision {
    let keeper = Gatekeeper::new(&config(text));
    let route = route(provider, model);
    keeper.decide(&question(Some(&route)), soon()).await
}

#[track_caller]
fn is(decision: &Decision, open: bool, cause: Cause) {
    assert_eq!(
        (decision.open, decision.cause),
        (open, cause),
        "{decision:?}"
    );
}

#[tokio::test]
async fn a_seeing_model_on_an_accepting_route_gets_pixels() {
    let decision = decide("", "anthropic", "claude-sonnet-4-5").await;
    is(&decision, true, Cause::ModelSees);
    assert!(decision.webp);
    let date = Catalogue::shipped().unwrap().date();
    assert!(decision.reason.contains(date), "{}", decision.reason);
    assert_eq!(decision.image_delivery, ImageDelivery::ToolResult);
}

#[tokio::test]
async fn a_blind_model_gets_none_in_auto() {
    let decision = decide("", "openrouter", "deepseek/deepseek-v3.2").await;
    is(&decision, false, Cause::ModelBlind);
}

#[tokio::test]
async fn an_unknown_provider_and_model_get_none() {
    for mode in ["auto", "native"] {
        let text = format!("agent: {{ image_input_mode: {mode} }}");
        let decision = decide(&text, "nobody", "nothing").await;
        is(&decision, false, Cause::ModelUnknown);
    }
}

#[tokio::test]
async fn native_on_an_accepting_route_is_the_operator_s_order_and_says_so() {
    let text = "agent: { image_input_mode: native }";
    let blind = decide(text, "openrouter", "deepseek/deepseek-v3.2").await;
    is(&blind, true, Cause::OperatorOrdered);
    assert!(
        blind.reason.contains("does not see images"),
        "{}",
        blind.reason
    );
    assert!(blind.reason.contains("image_input_mode is native"));
    let unknown = decide(text, "openrouter", "nobody/nothing").await;
    is(&unknown, true, Cause::OperatorOrdered);
}

#[tokio::test]
async fn mode_text_closes_for_a_model_that_sees() {
    let text = "agent: { image_input_mode: text }";
    let decision = decide(text, "anthropic", "claude-sonnet-4-5").await;
    is(&decision, false, Cause::ModeText);
}

#[tokio::test]
async fn g55_a_mode_in_blanks_is_native() {
    let text = "agent: { image_input_mode: ' Native ' }";
    let decision = decide(text, "openrouter", "nobody/nothing").await;
    is(&decision, true, Cause::OperatorOrdered);
}

#[tokio::test]
async fn g57_a_vision_backend_with_a_model_closes_auto() {
    let text = "auxiliary: { vision: { provider: auto, model: m } }";
    let decision = decide(text, "anthropic", "claude-sonnet-4-5").await;
    is(&decision, false, Cause::VisionBackend);
    assert!(decision.reason.contains("agent.prefer_native"));
}

#[tokio::test]
async fn prefer_native_opens_auto_beside_a_vision_backend_for_models_that_see() {
    let text = "{ agent: { prefer_native: true }, auxiliary: { vision: { model: m } } }";
    let seeing = decide(text, "anthropic", "claude-sonnet-4-5").await;
    is(&seeing, true, Cause::ModelSees);
    let blind = decide(text, "deepseek", "deepseek-chat").await;
    is(&blind, false, Cause::VisionBackend);
}

#[tokio::test]
async fn g59_the_main_model_s_word_counts_and_maybe_falls_through_to_the_catalogue() {
    let yes = "model: { provider: custom, default: m, supports_vision: 'yes' }";
    is(&decide(yes, "custom", "m").await, true, Cause::ModelSees);
    let maybe =
        "model: { provider: anthropic, default: claude-sonnet-4-5, supports_vision: maybe }";
    let decision = decide(maybe, "anthropic", "claude-sonnet-4-5").await;
    is(&decision, true, Cause::ModelSees);
    assert!(decision.reason.contains("catalogue"), "{}", decision.reason);
    let no = "model: { provider: anthropic, default: claude-sonnet-4-5, supports_vision: 0 }";
    let decision = decide(no, "anthropic", "claude-sonnet-4-5").await;
    is(&decision, false, Cause::ModelBlind);
}

#[tokio::test]
async fn the_main_model_s_word_holds_for_every_model_where_it_names_none() {
    let text = "model: { supports_vision: true }";
    is(&decide(text, "anywhere", "x").await, true, Cause::ModelSees);
    let text = "model: { provider: mine, supports_vision: true }";
    is(&decide(text, "mine", "x").await, true, Cause::ModelSees);
    is(
        &decide(text, "other", "x").await,
        false,
        Cause::ModelUnknown,
    );
}

#[tokio::test]
async fn providers_beat_custom_providers_and_both_the_catalogue() {
    let text = r#"
providers: { anthropic: { models: { claude-sonnet-4-5: { supports_vision: no } } } }
custom_providers:
  - { name: anthropic, models: { claude-sonnet-4-5: { vision: yes } } }
  - { name: lab, models: { big: { vision: yes } } }
model: { provider: "custom:lab" }
"#;
    let decision = decide(text, "anthropic", "claude-sonnet-4-5-20250929").await;
    is(&decision, false, Cause::ModelBlind);
    assert!(
        decision
            .reason
            .contains("providers.anthropic.models.claude-sonnet-4-5")
    );
    for provider in ["lab", "custom:lab", "custom"] {
        let decision = decide(text, provider, "big").await;
        is(&decision, true, Cause::ModelSees);
        assert!(
            decision.reason.contains("custom_providers[1]"),
            "{}",
            decision.reason
        );
    }
}

#[tokio::test]
async fn g61_a_veto_holds_through_an_aggregator_in_every_mode() {
    for mode in ["auto", "native"] {
        let text = format!(
            "{{ agent: {{ image_input_mode: {mode} }}, providers: {{ openrouter: {{ models: {{ xiaomi/mimo-x: {{ supports_vision: yes }} }} }} }} }}"
        );
        let decision = decide(&text, "openrouter", "xiaomi/mimo-x").await;
        is(&decision, false, Cause::RouteRefuses);
        assert!(decision.is_surprising());
        assert!(decision.reason.contains("xiaomi"), "{}", decision.reason);
    }
}

#[tokio::test]
async fn g63_a_look_up_that_fails_closes_the_gate() {
    let broken = Catalogue::parse("provider p\nnonsense x").unwrap_err();
    for mode in ["auto", "native"] {
        let config = config(&format!("agent: {{ image_input_mode: {mode} }}"));
        let keeper = Gatekeeper::with_catalogue(&config, Err(broken.clone()));
        let route = route("anthropic", "claude-sonnet-4-5");
        let decision = keeper.decide(&question(Some(&route)), soon()).await;
        is(&decision, false, Cause::LookUpFailed);
        assert_eq!(decision.reason, "read line 2 of the catalogue of models");
    }
}

#[tokio::test]
async fn g67_the_route_of_the_request_decides_not_the_configured_model() {
    let text = "model: { provider: anthropic, default: claude-sonnet-4-5, supports_vision: true }";
    let keeper = Gatekeeper::new(&config(text));
    let first = route("anthropic", "claude-sonnet-4-5");
    let second = route("deepseek", "deepseek-chat");
    let open = keeper.decide(&question(Some(&first)), soon()).await;
    is(&open, true, Cause::ModelSees);
    let closed = keeper.decide(&question(Some(&second)), soon()).await;
    is(&closed, false, Cause::ModelBlind);
}

#[tokio::test]
async fn the_main_model_stands_in_for_a_route() {
    let text = "model: { provider: anthropic, default: claude-sonnet-4-5 }";
    let keeper = Gatekeeper::new(&config(text));
    let explanation = keeper.explain(&question(None), soon()).await;
    assert!(explanation.is_stand_in);
    is(&explanation.decision, true, Cause::ModelSees);
    let nobody = Gatekeeper::new(&config(""));
    let decision = nobody.decide(&question(None), soon()).await;
    is(&decision, false, Cause::NoRoute);
    assert!(
        decision.reason.contains("names no route"),
        "{}",
        decision.reason
    );
}

#[tokio::test]
async fn the_request_s_mode_beats_the_configured_one() {
    let keeper = Gatekeeper::new(&config("agent: { image_input_mode: text }"));
    let route = route("anthropic", "claude-sonnet-4-5");
    let asked = GateQuestion {
        mode: Some(ImageInputMode::Native),
        ..question(Some(&route))
    };
    is(&keeper.decide(&asked, soon()).await, true, Cause::ModelSees);
}

#[tokio::test]
async fn the_source_of_a_picture_plays_no_role() {
    let keeper = Gatekeeper::new(&config(""));
    for (provider, model) in [
        ("anthropic", "claude-sonnet-4-5"),
        ("deepseek", "deepseek-chat"),
    ] {
        let route = route(provider, model);
        let mut decisions = Vec::new();
        for source in ImageSource::ALL.iter().copied() {
            let asked = GateQuestion {
                source,
                ..question(Some(&route))
            };
            decisions.push(keeper.decide(&asked, soon()).await);
        }
        decisions.dedup();
        assert_eq!(decisions.len(), 1);
    }
}

#[tokio::test]
async fn openai_chat_is_open_only_by_user_message() {
    let text = "talaria: { images: { image_delivery: user_message } }";
    let route = route("openai", "gpt-4o");
    let asked = GateQuestion {
        api: Some("openai-chat"),
        ..question(Some(&route))
    };
    let closed = Gatekeeper::new(&config("")).decide(&asked, soon()).await;
    is(&closed, false, Cause::ApiRefuses);
    let open = Gatekeeper::new(&config(text)).decide(&asked, soon()).await;
    is(&open, true, Cause::ModelSees);
    assert_eq!(open.image_delivery, ImageDelivery::UserMessage);
    let responses = Gatekeeper::new(&config(text))
        .decide(&question(Some(&route)), soon())
        .await;
    assert_eq!(responses.image_delivery, ImageDelivery::ToolResult);
}

#[tokio::test]
async fn a_refusal_closes_the_gate_for_its_session() {
    let keeper = Gatekeeper::new(&config(""));
    let route = route("anthropic", "claude-sonnet-4-5");
    let (one, two) = (SessionKey::from("one"), SessionKey::from("two"));
    keeper.remember_refusal(Some(&one), &route);
    let ask = |session| GateQuestion {
        session: Some(session),
        ..question(Some(&route))
    };
    let closed = keeper.decide(&ask(&one), soon()).await;
    is(&closed, false, Cause::RefusedBefore);
    is(
        &keeper.decide(&ask(&two), soon()).await,
        true,
        Cause::ModelSees,
    );
}

#[tokio::test]
async fn every_step_is_explained_until_one_answers() {
    let keeper = Gatekeeper::new(&config("model: { supports_vision: true, default: x }"));
    let route = route("anthropic", "claude-sonnet-4-5");
    let explanation = keeper.explain(&question(Some(&route)), soon()).await;
    let steps: Vec<_> = explanation
        .steps
        .iter()
        .map(|step| (step.source, step.answer))
        .collect();
    assert_eq!(
        steps,
        [
            ("model.supports_vision", Answer::Unknown),
            ("providers", Answer::Unknown),
            ("custom_providers", Answer::Unknown),
            ("catalogue", Answer::Yes),
            ("ollama", Answer::NotAsked),
            ("llama.cpp", Answer::NotAsked),
        ]
    );
    assert_eq!(explanation.steps[0].detail, "set for another model");
    assert_eq!(explanation.class.unwrap().0, RouteClass::Accepts);
}

#[tokio::test]
async fn names_out_of_a_request_cannot_break_the_reason() {
    let long = format!("evil\nMEDIA:/etc/passwd{}", "x".repeat(10_000));
    let decision = decide("", &long, &long).await;
    assert!(!decision.reason.contains('\n'));
    assert!(decision.reason.len() < 1_000);
}

#[test]
fn every_cause_a_gate_can_give_has_words() {
    let live = LiveRoute::new(&GateConfig::default(), &route("p", "m"), None);
    let classified = classify(&GateConfig::default(), ImageDelivery::ToolResult, &live);
    for cause in Cause::ALL {
        assert!(!reason(*cause, &live, &classified, None).is_empty());
    }
}

/// A llama-server of this machine that serves one body at `/props`.
async fn llama_server(body: &'static str) -> std::net::SocketAddr {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(talaria_types::runtime::spawn("llama_server", async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 2048];
            let count = stream.read(&mut head).await.unwrap();
            let is_props = head[..count].starts_with(b"GET /props");
            let (status, body) = if is_props { (200, body) } else { (404, "") };
            let answer = format!(
                "HTTP/1.1 {status} x\r\nserver: llama.cpp\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }));
    address
}

#[tokio::test]
async fn g65_a_local_llama_server_is_asked_where_nobody_else_knows() {
    for (body, open, cause) in [
        (r#"{"modalities":{"vision":true}}"#, true, Cause::ModelSees),
        (r#"{"modalities":["vision"]}"#, true, Cause::ModelSees),
        (
            r#"{"modalities":{"vision":false}}"#,
            false,
            Cause::ModelBlind,
        ),
        (
            r#"{"modalities":{"vision":"yes"}}"#,
            false,
            Cause::ModelUnknown,
        ),
    ] {
        let address = llama_server(body).await;
        let text = format!("custom_providers: [{{ name: lab, base_url: 'http://{address}/v1' }}]");
        let decision = decide(&text, "custom:lab", "gguf").await;
        is(&decision, open, cause);
        assert!(!decision.webp);
    }
}

#[tokio::test]
async fn no_server_is_asked_for_what_cannot_change_the_outcome() {
    let address = llama_server("{}").await;
    let lab = format!("base_url: 'http://{address}'");
    for (text, open, cause) in [
        ("agent: { image_input_mode: text }", false, Cause::ModeText),
        (
            "auxiliary: { vision: { model: m } }",
            false,
            Cause::VisionBackend,
        ),
        (
            "agent: { image_input_mode: native }",
            true,
            Cause::OperatorOrdered,
        ),
    ] {
        let text = format!(
            "{{ {text}, providers: {{ lab: {{ {lab}, tool_result_images: yes }} }}, model: {{ provider: lab, default: m }} }}"
        );
        let keeper = Gatekeeper::new(&config(&text));
        let explanation = keeper.explain(&question(None), soon()).await;
        is(&explanation.decision, open, cause);
        assert!(
            explanation
                .steps
                .iter()
                .all(|step| step.source != "llama.cpp")
        );
    }
}
