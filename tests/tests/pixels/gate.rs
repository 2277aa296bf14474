//! The gate beside its table: words of the configuration, vetoes, one gate for every source.

use serde_json::{Value, json};
use talaria_testkit::{Script, Service, ServiceBuilder};

use crate::scene::{
    assert_no_pixels, attached, bars, base64, blind, builder, deliver, media_lines, post, result,
    seeing, text,
};

async fn gate(builder: ServiceBuilder, route: Value) -> Value {
    let service = builder.start().await.unwrap();
    gate_of(&service, route).await
}

async fn gate_of(service: &Service, route: Value) -> Value {
    let delivery = deliver(service, result(&[bars(1)]), route).await;
    let gate = delivery["gate"].clone();
    let pixels = attached(&delivery).len();
    assert_eq!(pixels, usize::from(gate["open"] == true), "{gate}");
    gate
}

#[tokio::test]
async fn g55_a_mode_is_read_without_blanks_and_case() {
    let native = builder().set(&["agent", "image_input_mode"], " Native ");
    let gate = gate(
        native,
        json!({"provider": "openrouter", "model": "unheard_of"}),
    )
    .await;
    assert_eq!(
        (&gate["mode"], &gate["open"]),
        (&json!("native"), &json!(true))
    );
}

#[tokio::test]
async fn g57_a_backend_with_a_model_is_explicit() {
    let vision = json!({"provider": "auto", "model": "m"});
    let named = builder().set(&["auxiliary", "vision"], vision);
    assert_eq!(gate(named, seeing()).await["open"], false);
    let vision = json!({"provider": " AUTO ", "timeout": 60});
    let unnamed = builder().set(&["auxiliary", "vision"], vision);
    assert_eq!(gate(unnamed, seeing()).await["open"], true);
}

#[tokio::test]
async fn g59_the_main_models_word_is_coerced_or_passed_over() {
    let main = |word: &str, model: &str| {
        let main = json!({"provider": "my-endpoint", "default": model, "supports_vision": word});
        let custom = json!([{"name": "my-endpoint", "base_url": "http://192.0.2.1:9/v1"}]);
        builder()
            .set(&["model"], main)
            .set(&["custom_providers"], custom)
    };
    let route = json!({"provider": "my-endpoint", "model": "m"});
    assert_eq!(gate(main("yes", "m"), route.clone()).await["open"], true);
    assert_eq!(gate(main("maybe", "m"), route).await["open"], false);
    // `maybe` says nothing, so the catalogue is asked.
    let known = json!({"provider": "anthropic", "model": "claude-sonnet-4-5"});
    let maybe = json!({"provider": "anthropic", "default": "claude-sonnet-4-5", "supports_vision": "maybe"});
    assert_eq!(
        gate(builder().set(&["model"], maybe), known).await["open"],
        true
    );
}

#[tokio::test]
async fn g61_a_veto_reaches_through_an_aggregator() {
    let xiaomi = json!({"models": {"xiaomi/mimo-x": {"supports_vision": true}}});
    let native = builder()
        .set(&["agent", "image_input_mode"], "native")
        .set(&["providers", "openrouter"], xiaomi);
    let gate = gate(
        native,
        json!({"provider": "openrouter", "model": "xiaomi/mimo-x"}),
    )
    .await;
    assert_eq!(gate["open"], false, "{gate}");
    assert!(
        gate["reason"].as_str().unwrap().contains("xiaomi"),
        "{gate}"
    );
}

#[tokio::test]
async fn a_request_without_a_route_stands_on_the_main_model_or_stays_closed() {
    let body = json!({"result": result(&[bars(1)])});
    let service = builder().start().await.unwrap();
    let delivery = post(&service, "/v1/results/deliver", &body).await;
    assert_eq!(delivery["gate"]["open"], false);
    let reason = delivery["gate"]["reason"].as_str().unwrap();
    assert!(reason.contains("route"), "{reason}");
    let main = json!({"provider": "anthropic", "default": "sees"});
    let service = builder().set(&["model"], main).start().await.unwrap();
    let delivery = post(&service, "/v1/results/deliver", &body).await;
    assert_eq!(delivery["gate"]["open"], true, "{}", delivery["gate"]);
    assert_eq!(attached(&delivery).len(), 1);
}

#[tokio::test]
async fn a_request_may_change_the_mode() {
    let service = builder().start().await.unwrap();
    let ask = |mode: &str, route: Value| {
        let service = &service;
        let body = json!({"result": result(&[bars(1)]), "route": route, "image_input_mode": mode});
        async move { post(service, "/v1/results/deliver", &body).await["gate"].clone() }
    };
    assert_eq!(ask("text", seeing()).await["open"], false);
    let ordered = ask("native", blind()).await;
    assert_eq!(ordered["open"], true, "{ordered}");
    assert!(
        ordered["reason"].as_str().unwrap().contains("native"),
        "{ordered}"
    );
}

#[tokio::test]
async fn one_gate_decides_for_every_source() {
    let script = Script::new("s").tool("shot", result(&[bars(3)]));
    let service = builder().stdio("s", script).unwrap().start().await.unwrap();
    for (route, open) in [(seeing(), true), (blind(), false)] {
        let mut deliveries = Vec::new();
        let call = json!({"server": "s", "name": "shot", "route": route});
        deliveries.push(post(&service, "/v1/tools/call", &call).await);
        deliveries.push(deliver(&service, result(&[bars(3)]), route.clone()).await);
        for source in ["vision_analyze", "browser", "computer_use", "mcp"] {
            let body = json!({
                "source": source, "image": {"data": base64(&bars(3))}, "route": route,
            });
            deliveries.push(post(&service, "/v1/images/deliver", &body).await);
        }
        let gate = &deliveries[0]["gate"];
        for delivery in &deliveries {
            assert_eq!(&delivery["gate"], gate);
            assert_eq!(delivery["gate"]["open"], open, "{gate}");
            assert_eq!(media_lines(text(delivery)), 1, "{}", text(delivery));
            let pictures = attached(delivery);
            assert_eq!(pictures.len(), usize::from(open));
            assert!(pictures.iter().all(|picture| picture.bars() == 3));
        }
    }
    for format in ["hermes", "text", "mcp"] {
        let body = json!({"result": result(&[bars(3)]), "route": blind(), "format": format});
        let answer = service.post("/v1/results/deliver", &body).await.unwrap();
        assert_no_pixels(&answer.text().unwrap());
    }
}
