//! JSON of requests: the members of an object, and texts of answers.

/// The names and values of an object that is right: texts without quotes and escapes, anything else as it is written.
pub(crate) fn members(text: &str) -> Vec<(String, String)> {
    let mut rest = text.trim_start().strip_prefix('{').unwrap_or("").trim_start();
    let mut list = Vec::new();
    while rest.starts_with('"') {
        let (name, after) = string(rest);
        let after = after.trim_start().strip_prefix(':').unwrap_or("").trim_start();
        let (value, after) = if after.starts_with('"') { string(after) } else { other(after) };
        list.push((name, value));
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    list
}

/// Reads a text in quotes, and returns what follows it.
fn string(from: &str) -> (String, &str) {
    let mut units: Vec<u16> = Vec::new(); // escapes may be halves of a pair
    let mut chars = from.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (String::from_utf16_lossy(&units), &from[at + 1..]),
            '\\' => units.push(escape(&mut chars)),
            _ => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
        }
    }
    (String::from_utf16_lossy(&units), "")
}

fn escape(chars: &mut impl Iterator<Item = (usize, char)>) -> u16 {
    match chars.next().map_or('?', |(_, c)| c) {
        'b' => 8,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'u' => (0..4).fold(0, |code, _| code << 4 | chars.next().and_then(|(_, c)| c.to_digit(16)).unwrap_or(0) as u16),
        c => c as u16,
    }
}

/// Reads any other value: up to a comma or an end that is not within it.
fn other(from: &str) -> (String, &str) {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let end = from.find(|c| {
        let ends = !quoted && depth == 0 && (c == ',' || c == '}');
        match c {
            '"' if !escaped => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        ends
    });
    let (value, rest) = from.split_at(end.unwrap_or(from.len()));
    (value.trim_end().to_string(), rest)
}

/// A text as JSON, in quotes.
pub fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c as u32) < 32 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_as_it_is() {
        let pair = |k: &str, v: &str| (k.to_string(), v.to_string());
        assert_eq!(members("{}"), []);
        assert_eq!(
            members(" { \"a\" : -1.5e3 , \"b\":\"x\\\"\\u00e9\\ud83d\\ude00\\n\", \"c\":[1,{\"d\":\"],}\"}] ,\"e\":true}"),
            [pair("a", "-1.5e3"), pair("b", "x\"é😀\n"), pair("c", "[1,{\"d\":\"],}\"}]"), pair("e", "true")]
        );
    }

    #[test]
    fn a_text_comes_back() {
        let text = "a\"b\\c\nd\u{1}é";
        assert_eq!(quote(text), "\"a\\\"b\\\\c\\u000ad\\u0001é\"");
        assert_eq!(members(&format!("{{\"t\":{}}}", quote(text))), [("t".to_string(), text.to_string())]);
    }
}
