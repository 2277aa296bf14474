//! What an SVG becomes once everything referenced stands where it is used.
//!
//! Patterns inside patterns, `use` of `use` and markers on every vertex grow exponentially with
//! the length of the file. This adds them up without growing anything.

use std::collections::HashMap;

use resvg::usvg::roxmltree::{Document, Node, NodeId};

use super::too_complex;
use crate::limits::{
    MAX_SVG_ATTRIBUTES, MAX_SVG_BYTES, MAX_SVG_DEPTH, MAX_SVG_ENTITY_BYTES, MAX_SVG_STYLE_PAIRS,
    MAX_SVG_WEIGHT,
};
use crate::refusal::Refusal;

/// Bytes of attributes and text that weigh as much as an element.
const BYTES_PER_ELEMENT: usize = 64;
/// Properties by which a style rule refers to something: paints, clip, mask, filter, markers.
const STYLED_PROPERTIES: u64 = 8;
/// References inside an entity that the XML reader follows.
const ENTITY_FAN: u64 = 255;

/// Checks what the XML reader itself would make of the text.
pub(super) fn check_text(text: &str) -> Result<(), Refusal> {
    if text.len() > MAX_SVG_BYTES {
        return Err(too_complex(&format!("it has {} bytes", text.len())));
    }
    check_tags(text)?;
    let Some((_, definitions)) = text.split_once("<!ENTITY") else {
        return Ok(());
    };
    // Coarse: every reference stands for all definitions, once per reference inside them.
    let defined = definitions.split("]>").next().unwrap_or_default();
    let inner = ENTITY_FAN.min(1 + count(defined.matches('&').count()));
    let size = count(defined.len())
        .saturating_mul(count(text.matches('&').count()))
        .saturating_mul(inner);
    if size > MAX_SVG_ENTITY_BYTES {
        return Err(too_complex("its entities grow too large"));
    }
    Ok(())
}

/// Checks how deep tags nest and how many attributes they have, in one pass.
fn check_tags(text: &str) -> Result<(), Refusal> {
    let mut depth = 0_u32;
    // Whatever stands between two angle brackets; comments count as tags and only add.
    for part in text.split('<').skip(1) {
        if part.matches('=').count() > MAX_SVG_ATTRIBUTES {
            return Err(too_complex("an element has too many attributes"));
        }
        if part.starts_with('/') {
            depth = depth.saturating_sub(1);
        } else if !part.starts_with(['!', '?']) {
            let tag = part.split('>').next().unwrap_or_default();
            if !tag.ends_with('/') {
                depth += 1;
            }
        }
        if depth > MAX_SVG_DEPTH * 8 {
            return Err(too_complex("its elements are nested too deeply"));
        }
    }
    Ok(())
}

/// Checks the weight and the depth of the whole document.
pub(super) fn check(document: &Document<'_>) -> Result<(), Refusal> {
    let mut ids = HashMap::new();
    let mut elements = 0;
    let mut rules = 0;
    let mut declarations = 0;
    for node in document.descendants().filter(Node::is_element) {
        elements += 1;
        if let Some(id) = node.attribute("id") {
            ids.entry(id).or_insert(node);
        }
        if node.tag_name().name() == "style" {
            // Every selector of a list becomes a rule with all declarations of its own.
            let text = node.text().unwrap_or_default();
            rules += count(text.matches(['{', ',']).count());
            declarations += count(text.matches(';').count());
        }
    }
    if rules.saturating_mul(declarations.max(elements)) > MAX_SVG_STYLE_PAIRS {
        return Err(too_complex("its style sheet has too many rules"));
    }
    let mut scale = Scale {
        ids,
        known: HashMap::new(),
        styled: 0,
    };
    let styles = document
        .descendants()
        .filter(|node| node.tag_name().name() == "style");
    let (mut sum, mut most) = (0_u64, 0_u64);
    for style in styles {
        for id in references(style.text().unwrap_or_default()) {
            let weight = scale.of_id(id, 1)?.weight;
            sum = sum.saturating_add(weight);
            most = most.max(weight);
        }
    }
    // A rule may put what it refers to on any element.
    scale.known.clear();
    scale.styled = sum.min(most.saturating_mul(STYLED_PROPERTIES));
    let whole = scale.of(document.root_element(), 1)?;
    if whole.weight > MAX_SVG_WEIGHT {
        return Err(too_complex(&format!(
            "its references unfold to more than {MAX_SVG_WEIGHT} elements"
        )));
    }
    Ok(())
}

/// What an element comes to with all it holds and refers to.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    weight: u64,
    depth: u32,
}

struct Scale<'a, 'input> {
    ids: HashMap<&'a str, Node<'a, 'input>>,
    /// Nothing for an element that is being weighed: a circle, which the reader cuts.
    known: HashMap<NodeId, Size>,
    /// Added to every element for what the style sheet refers to.
    styled: u64,
}

impl<'a, 'input: 'a> Scale<'a, 'input> {
    fn of_id(&mut self, id: &str, depth: u32) -> Result<Size, Refusal> {
        match self.ids.get(id) {
            // A gradient is shared, whatever it holds.
            Some(node) if node.tag_name().name().ends_with("Gradient") => Ok(Size {
                weight: 1,
                depth: 1,
            }),
            Some(node) => self.of(*node, depth),
            None => Ok(Size::default()),
        }
    }

    fn of(&mut self, node: Node<'a, 'input>, depth: u32) -> Result<Size, Refusal> {
        if let Some(size) = self.known.get(&node.id()) {
            if depth + size.depth > MAX_SVG_DEPTH {
                return Err(too_complex("its elements are nested too deeply"));
            }
            return Ok(*size);
        }
        if depth > MAX_SVG_DEPTH {
            return Err(too_complex("its elements are nested too deeply"));
        }
        self.known.insert(node.id(), Size::default());
        let mut size = self.own(node, depth)?;
        for child in node.children() {
            if child.is_element() {
                size = joined(size, self.of(child, depth + 1)?, 1);
            } else if child.is_text() && !matches!(node.tag_name().name(), "style" | "script") {
                // Every letter becomes a shape.
                let letters = child.text().unwrap_or_default().trim().len();
                size.weight += count(letters);
            }
        }
        size.depth += 1;
        self.known.insert(node.id(), size);
        Ok(size)
    }

    /// The element itself and what its attributes refer to.
    fn own(&mut self, node: Node<'a, 'input>, depth: u32) -> Result<Size, Refusal> {
        let mut size = Size {
            weight: 1 + self.styled,
            depth: 0,
        };
        // A marker stands on every vertex; a vertex takes at least two bytes.
        let vertices = ["d", "points"]
            .into_iter()
            .filter_map(|name| node.attribute(name))
            .map(|data| count(data.len() / 2))
            .sum::<u64>()
            .max(1);
        for attribute in node.attributes() {
            let value = attribute.value();
            let is_data = value.starts_with("data:");
            if !is_data {
                size.weight += count(value.len() / BYTES_PER_ELEMENT);
            }
            let targets: Vec<&str> = if attribute.name() == "href" {
                value.trim().strip_prefix('#').into_iter().collect()
            } else {
                references(value).collect()
            };
            let times = if attribute.name().starts_with("marker") || value.contains("marker") {
                vertices
            } else {
                1
            };
            for id in targets {
                size = joined(size, self.of_id(id, depth + 1)?, times);
            }
        }
        Ok(size)
    }
}

fn joined(size: Size, part: Size, times: u64) -> Size {
    Size {
        weight: size
            .weight
            .saturating_add(part.weight.saturating_mul(times)),
        depth: size.depth.max(part.depth),
    }
}

/// The ids of every `url(#id)`.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split("url(").skip(1).filter_map(|rest| {
        let inside = rest.split(')').next()?;
        inside.trim_matches([' ', '"', '\'']).strip_prefix('#')
    })
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
