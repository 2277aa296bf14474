//! Permanent codes of notices: what a delivery says about a part it dropped, refused or changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! notice_codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal;)*) => {
        /// Codes of notices. `docs/errors.md` has a row for each.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
            JsonSchema,
        )]
        pub enum NoticeCode {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl NoticeCode {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The permanent snake-case text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

notice_codes! {
    /// The block's type is not one of the protocol.
    UnsupportedBlock = "unsupported_block";
    /// The block is not an object, or lacks what its type requires.
    MalformedBlock = "malformed_block";
    /// The block holds nothing.
    EmptyBlock = "empty_block";
    /// The payload is not valid base64.
    NotBase64 = "not_base64";
    /// The payload is over 50 MiB.
    PayloadTooLarge = "payload_too_large";
    /// The payload field holds an address instead of data; it is shown, not fetched.
    AddressInsteadOfData = "address_instead_of_data";
    /// The bytes are of another type than declared; the bytes decided.
    TypeMismatch = "type_mismatch";
    /// An image block holds something that is no picture; saved as what it is.
    NotAnImage = "not_an_image";
    /// The file could not be stored.
    NotStored = "not_stored";
    /// The link has no address.
    EmptyLink = "empty_link";
    /// The text was longer than the model's budget; the whole is in a file.
    TextSpilled = "text_spilled";
    /// The text was cut and could not be stored whole.
    TextTruncated = "text_truncated";
    /// The structured content was larger than the budget.
    StructuredTooLarge = "structured_too_large";
    /// `_meta` was over 16 KiB and was dropped.
    MetaTooLarge = "meta_too_large";
    /// A payload was repeated in text or structured content and replaced by a reference.
    RepeatReplaced = "repeat_replaced";
    /// The result had an older or a bare shape and was read as text or structured content.
    OldShape = "old_shape";
    /// The server's message had faults that were mended: lone surrogates, invalid UTF-8, depth.
    MessageMended = "message_mended";
    /// The block is no text, and the format answers a failed result with its texts only.
    LeftOutOfError = "left_out_of_error";
    /// The result held nothing at all.
    NoOutput = "no_output";
    /// The picture does not decode.
    ImageNotDecodable = "image_not_decodable";
    /// A picture of a format that is not decoded here, or that the model's API does not take.
    ImageUnsupported = "image_unsupported";
    /// The picture is over a limit of sides, pixels or memory.
    ImageTooLarge = "image_too_large";
    /// The drawing costs too much to draw.
    ImageTooComplex = "image_too_complex";
    /// Nothing within the budget would show anything of the picture.
    ImageOverBudget = "image_over_budget";
    /// Every place in the queue for pictures was taken.
    ImageBusy = "image_busy";
    /// The picture was not ready before the deadline.
    ImageLate = "image_late";
    /// Preparing the picture failed inside Talaria.
    ImageFailed = "image_failed";
    /// The same picture as another one of the result.
    ImageDuplicate = "image_duplicate";
    /// The session has been shown this picture as often as `vision.max_calls_per_image` allows.
    ImageRepeatLimit = "image_repeat_limit";
    /// More pictures than a result may carry as pixels.
    ImagesNotAttached = "images_not_attached";
    /// The picture was scaled down; coordinates need the factor.
    ImageDownscaled = "image_downscaled";
    /// A side was under 32 pixels and was padded with white.
    ImagePadded = "image_padded";
    /// The first frame of an animation stands for it.
    ImageFirstFrame = "image_first_frame";
    /// The picture is damaged; what could be decoded is shown.
    ImageDamaged = "image_damaged";
    /// Words in the picture may be too small to read after the fit.
    ImageHardToRead = "image_hard_to_read";
    /// The picture was cut into tiles.
    ImageTiled = "image_tiled";
    /// Only the wanted region of the picture is shown.
    ImageCropped = "image_cropped";
    /// The pixels were taken out of the delivery again; the files remain.
    ImageTextOnly = "image_text_only";
    /// Nobody described the picture.
    ImageNotDescribed = "image_not_described";
    /// The description was longer than a delivery takes.
    DescriptionCut = "description_cut";
    /// The backend gave no answer; what it thought stands in for one.
    DescriptionIsReasoning = "description_is_reasoning";
}
