//! `docs/formats.md` shows what the code makes. `UPDATE_DOCS=1` rewrites its examples.

use std::path::Path;

use serde_json::Value;
use talaria_content::{Delivery, Format, ImageDelivery, RenderOptions, render, text_only};

const PAGE: &str = "../../docs/formats.md";

/// The example of a section: where its lines begin and end.
fn example(page: &str, section: &str) -> std::ops::Range<usize> {
    let after = |from: usize, what: &str| {
        let at = page.get(from..).unwrap().find(what).expect(what);
        from + at + what.len()
    };
    let section = after(0, &format!("\n## {section}\n"));
    let fence = after(section, "\n```");
    let start = after(fence, "\n");
    // The line break before the closing fence belongs to the example.
    let end = after(start - 1, "\n```") - "```".len();
    start..end
}

fn shown(delivery: &Delivery, format: Format) -> String {
    let options = RenderOptions {
        call_id: Some("call_123".to_owned()),
        tool_name: Some("mcp__charts__draw".to_owned()),
        image_delivery: ImageDelivery::ToolResult,
    };
    let body = render(delivery, format, &options).body;
    let shown = match format {
        Format::Text => body,
        Format::Talaria
        | Format::Hermes
        | Format::Anthropic
        | Format::OpenaiResponses
        | Format::OpenaiChat
        | Format::Gemini
        | Format::Mcp => {
            let value: Value = serde_json::from_str(&body).unwrap();
            serde_json::to_string_pretty(&value).unwrap()
        }
    };
    format!("{shown}\n")
}

#[test]
fn the_page_of_formats_shows_what_the_code_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let mut page = std::fs::read_to_string(&path).unwrap();
    let before = page.clone();
    let delivery: Delivery =
        serde_json::from_str(page.get(example(&page, "`talaria`")).unwrap()).unwrap();
    for format in Format::ALL {
        let place = example(&page, &format!("`{}`", format.as_str()));
        page.replace_range(place, &shown(&delivery, format));
    }
    let place = example(&page, "Text only");
    page.replace_range(place, &shown(&text_only(delivery), Format::Text));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
        return;
    }
    assert_eq!(page, before, "UPDATE_DOCS=1 rewrites the page");
}
