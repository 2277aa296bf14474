//! Small aligned tables for people.

use unicode_width::UnicodeWidthStr;

/// Blanks between two columns.
const GAP: usize = 2;

/// A table under construction.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    #[must_use]
    pub fn new(headings: &[&str]) -> Self {
        Self {
            rows: vec![
                headings
                    .iter()
                    .map(|heading| (*heading).to_owned())
                    .collect(),
            ],
        }
    }

    /// Adds a row; control characters in it are made visible.
    pub fn row<const N: usize>(&mut self, cells: &[String; N]) {
        self.rows
            .push(cells.iter().map(|cell| one_line(cell)).collect());
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// The lines, each ended by a newline, without blanks at the end.
    #[must_use]
    pub fn render(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                let padding = width.saturating_sub(cell.width()).saturating_add(GAP);
                line.push_str(&" ".repeat(padding));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        widths
    }
}

/// Text that stays on its line and cannot steer a terminal.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            let escaped = letter.is_control().then(|| letter.escape_default());
            let plain = escaped.is_none().then_some(letter);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

/// Text that fits so many columns, with an ellipsis where something is missing.
#[must_use]
pub fn shorten(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        short.push(letter);
        if short.width() >= columns {
            short.pop();
            break;
        }
    }
    short.push('…');
    short
}

/// A number of bytes as people write it.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut amount = count as f64;
    let mut unit = "B";
    for larger in UNITS {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    format!("{amount:.1} {unit}")
}

/// A count with its noun, in the plural where it belongs.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ if noun.ends_with("ry") => format!("{number} {}ies", noun.trim_end_matches('y')),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Table, bytes, count, one_line, shorten};

    #[test]
    fn aligns_columns_by_display_width() {
        let mut table = Table::new(&["NAME", "SIZE"]);
        table.row(&["報告.pdf".to_owned(), "2.6 KiB".to_owned()]);
        table.row(&["a".to_owned(), String::new()]);
        assert_eq!(table.render(), "NAME      SIZE\n報告.pdf  2.6 KiB\na\n");
    }

    #[test]
    fn knows_when_it_has_no_rows() {
        let mut table = Table::new(&["NAME"]);
        assert!(table.is_empty());
        table.row(&["a".to_owned()]);
        assert!(!table.is_empty());
    }

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(one_line("a\u{1b}[31m\nb"), "a\\u{1b}[31m\\nb");
    }

    #[test]
    fn long_text_is_cut_by_display_width() {
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(shorten("abcd", 3), "ab…");
        assert_eq!(shorten("報告書類", 5), "報告…");
    }

    #[test]
    fn sizes_read_well() {
        let shown = [0, 1023, 1024, 1536, 52_428_800, 10 << 30, 1 << 50].map(bytes);
        let expected = [
            "0 B",
            "1023 B",
            "1.0 KiB",
            "1.5 KiB",
            "50.0 MiB",
            "10.0 GiB",
            "1024.0 TiB",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn counts_have_a_plural() {
        let shown = [count(1, "entry"), count(3, "entry"), count(0, "page")];
        assert_eq!(shown, ["1 entry", "3 entries", "0 pages"]);
    }
}
