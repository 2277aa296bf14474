//! The 54 rows of the gate's truth table (specification 2.5), each through its own service.

use serde_json::{Value, json};
use talaria_testkit::service::PATIENCE;

use crate::scene::{attached, bars, builder, deliver, media_lines, result, text};

/// What an operator reads where pixels were to be expected.
const LOG_LINE: &str = "pixels kept out";

/// One row: mode, whether an auxiliary backend is named, whether the model sees, the class of
/// the route; then whether the gate opens and whether a closed gate leaves a line in the log.
struct Row {
    mode: &'static str,
    aux: bool,
    model: &'static str,
    provider: &'static str,
    open: bool,
    logs: bool,
}

/// One test per row: mode, aux, sees, route, gate, log.
macro_rules! rows {
    ($($test:ident: $mode:literal $aux:literal $sees:ident $route:ident => $gate:ident $log:ident;)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                check(Row {
                    mode: $mode,
                    aux: $aux,
                    model: stringify!($sees),
                    provider: provider(stringify!($route)),
                    open: stringify!($gate) == "open",
                    logs: stringify!($log) == "logged",
                })
                .await;
            }
        )*
    };
}

rows! {
    g01_auto_seeing_on_accepts: "auto" false sees accepts => open quiet;
    g02_auto_seeing_on_neutral: "auto" false sees neutral => open quiet;
    g03_auto_seeing_on_veto: "auto" false sees veto => closed logged;
    g04_auto_blind_on_accepts: "auto" false blind accepts => closed quiet;
    g05_auto_blind_on_neutral: "auto" false blind neutral => closed quiet;
    g06_auto_blind_on_veto: "auto" false blind veto => closed quiet;
    g07_auto_unknown_on_accepts: "auto" false unheard_of accepts => closed quiet;
    g08_auto_unknown_on_neutral: "auto" false unheard_of neutral => closed quiet;
    g09_auto_unknown_on_veto: "auto" false unheard_of veto => closed quiet;
    g10_auto_with_backend_seeing_on_accepts: "auto" true sees accepts => closed quiet;
    g11_auto_with_backend_seeing_on_neutral: "auto" true sees neutral => closed quiet;
    g12_auto_with_backend_seeing_on_veto: "auto" true sees veto => closed quiet;
    g13_auto_with_backend_blind_on_accepts: "auto" true blind accepts => closed quiet;
    g14_auto_with_backend_blind_on_neutral: "auto" true blind neutral => closed quiet;
    g15_auto_with_backend_blind_on_veto: "auto" true blind veto => closed quiet;
    g16_auto_with_backend_unknown_on_accepts: "auto" true unheard_of accepts => closed quiet;
    g17_auto_with_backend_unknown_on_neutral: "auto" true unheard_of neutral => closed quiet;
    g18_auto_with_backend_unknown_on_veto: "auto" true unheard_of veto => closed quiet;
    g19_native_seeing_on_accepts: "native" false sees accepts => open quiet;
    g20_native_seeing_on_neutral: "native" false sees neutral => open quiet;
    g21_native_seeing_on_veto: "native" false sees veto => closed logged;
    g22_native_blind_on_accepts: "native" false blind accepts => open quiet;
    g23_native_blind_on_neutral: "native" false blind neutral => closed logged;
    g24_native_blind_on_veto: "native" false blind veto => closed logged;
    g25_native_unknown_on_accepts: "native" false unheard_of accepts => open quiet;
    g26_native_unknown_on_neutral: "native" false unheard_of neutral => closed logged;
    g27_native_unknown_on_veto: "native" false unheard_of veto => closed logged;
    g28_native_with_backend_seeing_on_accepts: "native" true sees accepts => open quiet;
    g29_native_with_backend_seeing_on_neutral: "native" true sees neutral => open quiet;
    g30_native_with_backend_seeing_on_veto: "native" true sees veto => closed logged;
    g31_native_with_backend_blind_on_accepts: "native" true blind accepts => open quiet;
    g32_native_with_backend_blind_on_neutral: "native" true blind neutral => closed logged;
    g33_native_with_backend_blind_on_veto: "native" true blind veto => closed logged;
    g34_native_with_backend_unknown_on_accepts: "native" true unheard_of accepts => open quiet;
    g35_native_with_backend_unknown_on_neutral: "native" true unheard_of neutral => closed logged;
    g36_native_with_backend_unknown_on_veto: "native" true unheard_of veto => closed logged;
    g37_text_seeing_on_accepts: "text" false sees accepts => closed quiet;
    g38_text_seeing_on_neutral: "text" false sees neutral => closed quiet;
    g39_text_seeing_on_veto: "text" false sees veto => closed quiet;
    g40_text_blind_on_accepts: "text" false blind accepts => closed quiet;
    g41_text_blind_on_neutral: "text" false blind neutral => closed quiet;
    g42_text_blind_on_veto: "text" false blind veto => closed quiet;
    g43_text_unknown_on_accepts: "text" false unheard_of accepts => closed quiet;
    g44_text_unknown_on_neutral: "text" false unheard_of neutral => closed quiet;
    g45_text_unknown_on_veto: "text" false unheard_of veto => closed quiet;
    g46_text_with_backend_seeing_on_accepts: "text" true sees accepts => closed quiet;
    g47_text_with_backend_seeing_on_neutral: "text" true sees neutral => closed quiet;
    g48_text_with_backend_seeing_on_veto: "text" true sees veto => closed quiet;
    g49_text_with_backend_blind_on_accepts: "text" true blind accepts => closed quiet;
    g50_text_with_backend_blind_on_neutral: "text" true blind neutral => closed quiet;
    g51_text_with_backend_blind_on_veto: "text" true blind veto => closed quiet;
    g52_text_with_backend_unknown_on_accepts: "text" true unheard_of accepts => closed quiet;
    g53_text_with_backend_unknown_on_neutral: "text" true unheard_of neutral => closed quiet;
    g54_text_with_backend_unknown_on_veto: "text" true unheard_of veto => closed quiet;
}

/// A provider of each class.
fn provider(class: &str) -> &'static str {
    match class {
        "accepts" => "openrouter",
        "neutral" => "mystery",
        "veto" => "xiaomi",
        other => panic!("no class {other}"),
    }
}

async fn check(row: Row) {
    let mut builder = builder().set(&["agent", "image_input_mode"], row.mode);
    if row.aux {
        let backend = json!({"provider": "openrouter", "model": "some/vision-model"});
        builder = builder.set(&["auxiliary", "vision"], backend);
    }
    let service = builder.start().await.unwrap();
    let route = json!({"provider": row.provider, "model": row.model});
    let delivery = deliver(&service, result(&[bars(2)]), route).await;
    assert_eq!(delivery["gate"]["open"], row.open, "{}", delivery["gate"]);
    assert_eq!(delivery["gate"]["mode"], row.mode);
    let reason = delivery["gate"]["reason"].as_str().unwrap();
    assert!(reason.len() > 10, "{reason:?} tells an operator nothing");
    assert_eq!(media_lines(text(&delivery)), 1, "{}", text(&delivery));
    let pictures = attached(&delivery);
    assert_eq!(pictures.len(), usize::from(row.open));
    assert!(pictures.iter().all(|picture| picture.bars() == 2));
    assert_eq!(delivery["is_error"], Value::Bool(false));
    service.terminate().unwrap();
    assert!(service.wait_exit(PATIENCE).await.unwrap().success());
    let log = service.log().unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(LOG_LINE)).collect();
    assert_eq!(lines.len(), usize::from(row.logs), "{lines:?}");
    assert!(
        lines.iter().all(|line| line.contains(row.provider)),
        "{lines:?}"
    );
}
