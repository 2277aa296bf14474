//! The real files that the demo server hands out.

/// One file in the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Address under which `resources/read` finds it.
    pub uri: &'static str,
    /// File name.
    pub name: &'static str,
    /// True media type.
    pub media_type: &'static str,
    /// What a listing says of it.
    pub description: &'static str,
    /// Content.
    pub bytes: &'static [u8],
}

/// A PDF of three pages.
pub const REPORT: Asset = Asset {
    uri: "demo://files/quarterly-report.pdf",
    name: "quarterly-report.pdf",
    media_type: "application/pdf",
    description: "A report of three pages",
    bytes: include_bytes!("../../assets/demo/quarterly-report.pdf"),
};

/// A Word document.
pub const NOTES: Asset = Asset {
    uri: "demo://files/meeting-notes.docx",
    name: "meeting-notes.docx",
    media_type: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    description: "Notes of a meeting",
    bytes: include_bytes!("../../assets/demo/meeting-notes.docx"),
};

/// An Excel workbook of two sheets.
pub const ORDERS: Asset = Asset {
    uri: "demo://files/orders.xlsx",
    name: "orders.xlsx",
    media_type: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    description: "Orders by region",
    bytes: include_bytes!("../../assets/demo/orders.xlsx"),
};

/// A ZIP archive of three entries.
pub const BUNDLE: Asset = Asset {
    uri: "demo://files/bundle.zip",
    name: "bundle.zip",
    media_type: "application/zip",
    description: "An archive with three entries",
    bytes: include_bytes!("../../assets/demo/bundle.zip"),
};

/// One second of sound.
pub const CHIME: Asset = Asset {
    uri: "demo://files/chime.wav",
    name: "chime.wav",
    media_type: "audio/wav",
    description: "A chime of one second",
    bytes: include_bytes!("../../assets/demo/chime.wav"),
};

/// A screenshot of 1280 by 800 pixels.
pub const SCREENSHOT: Asset = Asset {
    uri: "demo://files/screenshot.png",
    name: "screenshot.png",
    media_type: "image/png",
    description: "A browser window",
    bytes: include_bytes!("../../assets/demo/screenshot.png"),
};

/// Plain text, with letters outside ASCII.
pub const README: Asset = Asset {
    uri: "demo://files/read-me.txt",
    name: "read-me.txt",
    media_type: "text/plain",
    description: "A few lines of text",
    bytes: README_TEXT.as_bytes(),
};

/// The text of [`README`].
pub const README_TEXT: &str =
    "Grüße aus dem Demo-Server.\n日本語も届きます。\nThe last line ends here.";

/// Every file.
pub const ALL: [Asset; 7] = [REPORT, NOTES, ORDERS, BUNDLE, CHIME, SCREENSHOT, README];

/// Finds a file by its address.
#[must_use]
pub fn find(uri: &str) -> Option<Asset> {
    ALL.into_iter().find(|asset| asset.uri == uri)
}
