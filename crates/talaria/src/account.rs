//! A delivery as people read it.

use talaria_content::{Artifact, ArtifactKind, Delivery, Link, Notice};

use crate::table::{Table, bytes, one_line};

/// The text the model would read, then files, links, notices and what else there is.
#[must_use]
pub fn account(delivery: &Delivery) -> String {
    let mut sections = Vec::new();
    if delivery.is_error {
        sections.push("The tool answered with an error.\n".to_owned());
    }
    if !delivery.text.is_empty() {
        sections.push(format!("{}\n", visible(&delivery.text)));
    }
    if let Some(structured) = &delivery.structured {
        sections.push(format!("Structured content\n{structured:#}\n"));
    }
    sections.extend(files(&delivery.artifacts));
    sections.extend(pictures(delivery));
    sections.extend(links(&delivery.links));
    sections.extend(notices(&delivery.notices));
    sections.push(format!("{} in {} ms\n", delivery.id, delivery.elapsed_ms));
    sections.join("\n")
}

fn files(artifacts: &[Artifact]) -> Option<String> {
    let mut table = Table::new(&["FILE", "TYPE", "SIZE", "PATH"]);
    for artifact in artifacts {
        table.row(&[
            artifact.name.clone(),
            artifact.media_type.clone(),
            bytes(artifact.bytes),
            artifact.path.display().to_string(),
        ]);
    }
    rendered(&table)
}

/// The pictures as pixels, or why there are none.
fn pictures(delivery: &Delivery) -> Option<String> {
    let is_picture = |artifact: &Artifact| artifact.kind == ArtifactKind::Image;
    if !delivery.gate.open && delivery.artifacts.iter().any(is_picture) {
        return Some(format!("No pixels: {}\n", delivery.gate.reason));
    }
    let mut table = Table::new(&["PIXELS", "TYPE", "SIZE", "OF"]);
    for picture in &delivery.attachments {
        let name = delivery
            .artifacts
            .iter()
            .find(|artifact| artifact.id == picture.artifact)
            .map_or_else(
                || picture.artifact.to_string(),
                |artifact| artifact.name.clone(),
            );
        table.row(&[
            format!("{}×{}", picture.width, picture.height),
            picture.media_type.clone(),
            bytes(u64::try_from(picture.data.len() / 4 * 3).unwrap_or(u64::MAX)),
            format!(
                "{name} ({}×{})",
                picture.original_width, picture.original_height
            ),
        ]);
    }
    rendered(&table)
}

fn links(links: &[Link]) -> Option<String> {
    let mut table = Table::new(&["LINK", "URI", "READ WITH"]);
    for link in links {
        table.row(&[
            link.name.clone(),
            link.uri.clone(),
            link.reader_tool
                .clone()
                .unwrap_or_else(|| "nothing".to_owned()),
        ]);
    }
    rendered(&table)
}

fn notices(notices: &[Notice]) -> Option<String> {
    let mut table = Table::new(&["NOTICE", "BLOCK", "MESSAGE"]);
    for notice in notices {
        table.row(&[
            notice.code.as_str().to_owned(),
            notice
                .block
                .map(|block| block.to_string())
                .unwrap_or_default(),
            notice.message.clone(),
        ]);
    }
    rendered(&table)
}

fn rendered(table: &Table) -> Option<String> {
    (!table.is_empty()).then(|| table.render())
}

/// Text whose lines stay lines and cannot steer a terminal.
fn visible(text: &str) -> String {
    text.split('\n')
        .map(|line| {
            line.split('\t')
                .map(one_line)
                .collect::<Vec<_>>()
                .join("\t")
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use talaria_content::Delivery;

    use super::account;

    fn delivery() -> Delivery {
        serde_json::from_value(json!({
            "id": "dlv_01ARZ3NDEKTSV4RRFFQ69G5FAV", "text": "Two\n\tlines\u{1b}[2J", "attachments": [],
            "artifacts": [{
                "id": "art_01ARZ3NDEKTSV4RRFFQ69G5FAV", "kind": "document", "name": "a.pdf",
                "path": "/cache/documents/doc_1_a.pdf", "url": null, "media_type": "application/pdf",
                "declared_type": null, "bytes": 2651, "sha256": "00", "source_uri": null
            }],
            "links": [{
                "uri": "demo://a", "name": "a", "media_type": null, "size": null,
                "description": null, "reader_tool": null
            }],
            "structured": {"a": 1}, "meta": null, "is_error": true,
            "notices": [{"code": "not_base64", "message": "Not base64.", "block": 2}],
            "gate": {"open": false, "mode": "auto", "reason": "none"}, "vision": null,
            "server": null, "tool": null, "elapsed_ms": 41
        }))
        .unwrap()
    }

    #[test]
    fn says_everything_that_is_in_the_delivery() {
        assert_eq!(
            account(&delivery()),
            "The tool answered with an error.\n\
             \n\
             Two\n\tlines\\u{1b}[2J\n\
             \n\
             Structured content\n{\n  \"a\": 1\n}\n\
             \n\
             FILE   TYPE             SIZE     PATH\n\
             a.pdf  application/pdf  2.6 KiB  /cache/documents/doc_1_a.pdf\n\
             \n\
             LINK  URI       READ WITH\n\
             a     demo://a  nothing\n\
             \n\
             NOTICE      BLOCK  MESSAGE\n\
             not_base64  2      Not base64.\n\
             \n\
             dlv_01ARZ3NDEKTSV4RRFFQ69G5FAV in 41 ms\n"
        );
    }
}
