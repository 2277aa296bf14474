//! Finds out whose answer a message is when the message itself cannot be read.
//!
//! The content of a message may hold the text `"id":` anywhere, so only two places count: the
//! fields before the result, and the very end of a complete message (measured: TypeScript
//! servers write the id last, the others first).

/// How far from the end the id may begin.
const TAIL_BYTES: usize = 128;

/// What the outside of a message tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// It answers the request with this id.
    Answer(i64),
    /// It looks like an answer, to an unknown request.
    SomeAnswer,
    /// It is a request or a notification of the server, and answers nothing.
    ServerMessage,
    /// It is no JSON-RPC at all.
    Noise,
}

/// Looks at the beginning of a message and, where it is complete, at its end.
pub(crate) fn anchor(head: &[u8], tail: Option<&[u8]>) -> Anchor {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    let mut cursor = Cursor { text: head, at: 0 };
    cursor.blank();
    if cursor.step(b'[') {
        cursor.blank();
    }
    if !cursor.step(b'{') {
        return Anchor::Noise;
    }
    let mut known = Anchor::Noise;
    loop {
        match cursor.field() {
            Some("jsonrpc") => {
                if cursor.string().is_none() {
                    break;
                }
                if known == Anchor::Noise {
                    known = Anchor::SomeAnswer;
                }
            }
            Some("id") => match cursor.id() {
                Some(id) => known = Anchor::Answer(id),
                // A word of the server's own: one more field may tell what this is.
                None if cursor.ends_string() => known = Anchor::SomeAnswer,
                None => break,
            },
            Some("method") => return Anchor::ServerMessage,
            Some("result" | "error") => {
                if known == Anchor::Noise {
                    known = Anchor::SomeAnswer;
                }
                break;
            }
            Some(_) | None => break,
        }
        cursor.blank();
        if !cursor.step(b',') {
            break;
        }
    }
    match (known, tail) {
        (Anchor::SomeAnswer, Some(tail)) => {
            id_at_end(tail).map_or(Anchor::SomeAnswer, Anchor::Answer)
        }
        (known, _) => known,
    }
}

/// The id of `…,"id":N}` or `…,"id":N,"jsonrpc":"2.0"}`.
fn id_at_end(tail: &[u8]) -> Option<i64> {
    let tail = tail.get(tail.len().saturating_sub(TAIL_BYTES)..)?;
    let key = b"\"id\"";
    let at = tail.windows(key.len()).rposition(|window| window == key)?;
    let before = tail.get(..at)?.trim_ascii_end();
    if !matches!(before.last(), Some(b',' | b'{')) {
        return None;
    }
    let mut cursor = Cursor { text: tail, at };
    cursor.field()?;
    let id = cursor.id()?;
    cursor.blank();
    if cursor.step(b',') {
        if cursor.field() != Some("jsonrpc") {
            return None;
        }
        cursor.string()?;
        cursor.blank();
    }
    let is_end = cursor.step(b'}') && tail.get(cursor.at..)?.trim_ascii().is_empty();
    is_end.then_some(id)
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn blank(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn step(&mut self, byte: u8) -> bool {
        let is_here = self.text.get(self.at) == Some(&byte);
        if is_here {
            self.at += 1;
        }
        is_here
    }

    /// A key and its colon.
    fn field(&mut self) -> Option<&'a str> {
        let key = self.string()?;
        self.blank();
        self.step(b':').then_some(key)
    }

    /// A string without escapes.
    fn string(&mut self) -> Option<&'a str> {
        self.blank();
        if !self.step(b'"') {
            return None;
        }
        let rest = self.text.get(self.at..)?;
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        let string = std::str::from_utf8(rest.get(..length)?).ok()?;
        self.at += length;
        self.step(b'"').then_some(string)
    }

    /// Whether a string has just been read.
    fn ends_string(&self) -> bool {
        self.at.checked_sub(1).and_then(|last| self.text.get(last)) == Some(&b'"')
    }

    /// A number or a string of one.
    fn id(&mut self) -> Option<i64> {
        self.blank();
        if self.text.get(self.at) == Some(&b'"') {
            return self.string()?.trim().parse().ok();
        }
        let rest = self.text.get(self.at..)?;
        let length = rest
            .iter()
            .position(|byte| !(byte.is_ascii_digit() || matches!(byte, b'-' | b'.')))?;
        let token = std::str::from_utf8(rest.get(..length)?).ok()?;
        self.at += length;
        let whole = token
            .split_once('.')
            .map_or(Some(token), |(whole, fraction)| {
                fraction.bytes().all(|byte| byte == b'0').then_some(whole)
            });
        whole?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{Anchor, anchor};

    #[test]
    fn finds_the_id_before_the_result() {
        for head in [
            &br#"{"jsonrpc":"2.0","id":7,"result":{"content":["#[..],
            br#" { "jsonrpc" : "2.0" , "id" : "7" , "result""#,
            br#"{"id":7,"jsonrpc":"2.0","result":{"x":1,"id":9"#,
            br#"{"id":7.0,"result":{}"#,
            b"\xEF\xBB\xBF{\"id\":7,",
        ] {
            assert_eq!(
                anchor(head, None),
                Anchor::Answer(7),
                "{}",
                String::from_utf8_lossy(head)
            );
        }
    }

    #[test]
    fn finds_the_id_at_the_end_of_a_complete_message() {
        let head = br#"{"result":{"content":[{"type":"text","text":"{\"id\":3}"}]"#;
        for tail in [
            &br#"x"}]},"id":7}"#[..],
            br#"},"jsonrpc":"2.0","id":"7"} "#,
            br#"},"id":7,"jsonrpc":"2.0"}"#,
        ] {
            assert_eq!(anchor(head, Some(tail)), Anchor::Answer(7));
        }
    }

    #[test]
    fn does_not_take_an_id_out_of_the_content() {
        let head = br#"{"jsonrpc":"2.0","result":{"content":"#;
        for tail in [
            &br#"{\"id\":7}"}]}}"#[..],
            br#","text":"a\",\"id\":7}"#,
            br#""id":7"#,
            b"\"x\"id\":7}",
        ] {
            assert_eq!(anchor(head, Some(tail)), Anchor::SomeAnswer);
        }
        assert_eq!(anchor(head, None), Anchor::SomeAnswer);
    }

    #[test]
    fn tells_server_messages_and_noise_apart() {
        assert_eq!(
            anchor(
                br#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","#,
                None
            ),
            Anchor::ServerMessage
        );
        assert_eq!(
            anchor(br#"{"method":"notifications/progress","#, None),
            Anchor::ServerMessage
        );
        for noise in [
            &b"Starting server"[..],
            b"",
            b"{\"level\":\"info\"",
            b"[1,2",
            b"{broken",
        ] {
            assert_eq!(anchor(noise, Some(b"\"id\":7}")), Anchor::Noise);
        }
    }
}
