//! Is what is at a secret's place a secret, or code, a name, or what stands for a value that is elsewhere?

/// What a pattern found.
pub(super) struct Found<'a> {
    pub text: &'a str,
    /// Where the pattern began in the text: at its keyword.
    pub start: usize,
    /// What assigns, such as `: `; empty where the pattern has no such place.
    pub sign: &'a str,
    pub value: &'a str,
    /// Where the value begins in the text.
    pub at: usize,
}

/// What a value must be like to be masked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Check {
    /// At least so many bits per character.
    Shape(f64),
    /// What a vendor's name is given.
    Named,
    /// Also a word, since people choose passwords.
    Password,
    /// Letters and digits as keys have them.
    Secret,
    /// The same, where the name is more than `key`.
    Key,
    /// As keys are that nobody chose, since the place says little.
    Random,
    /// Hard to guess, as in a sentence.
    Strong,
    /// What people choose, in a sentence that says so.
    Chosen,
    /// The password in a URL, and no port.
    Url,
    /// Anything but a placeholder.
    Word,
    /// A mistake in the table: masks what the pattern finds.
    Unknown,
}

impl Check {
    /// The third column of a table.
    pub(super) fn parse(word: &str) -> Self {
        match word {
            "password" => Self::Password,
            "secret" => Self::Secret,
            "key" => Self::Key,
            "random" => Self::Random,
            "strong" => Self::Strong,
            "chosen" => Self::Chosen,
            "url" => Self::Url,
            "word" => Self::Word,
            number => number.parse().map_or(Self::Unknown, Self::Shape),
        }
    }

    pub(super) fn is_secret(self, found: &Found<'_>) -> bool {
        let value = found.value;
        let names_other = || has_any(&found.name(), &OTHER_NAMES);
        match self {
            Self::Unknown | Self::Shape(0.0) => true,
            Self::Shape(bits) => entropy(value) >= bits && !(value.contains('-') && is_words(value)),
            Self::Named => is_mixed(value) && entropy(value) >= 3.0 && !has_any(&found.name(), &OTHER_VALUES),
            _ if is_placeholder(value) => false,
            Self::Word => !TYPES.contains(&value.to_lowercase().as_str()),
            Self::Password => found.is_password(),
            Self::Secret => found.is_key() && !names_other(),
            Self::Key => found.is_key() && found.is_compound() && !names_other(),
            Self::Random => {
                found.is_key()
                    && value.len() >= 16
                    && entropy(value) >= 3.5
                    && !has_any(&found.name(), &OTHER_VALUES)
                    && !names_other()
            }
            Self::Strong => is_strong(value),
            Self::Chosen => is_strong(value) || is_chosen(value),
            Self::Url => !found.is_port(),
        }
    }
}

/// Names of what is shown to all, or names something.
const OTHER_NAMES: [&str; 16] = [
    "public",
    "publish",
    "cache",
    "primary",
    "foreign",
    "idempot",
    "partition",
    "sort",
    "shard",
    "restore",
    "pagetoken",
    "page_token",
    "page-token",
    "continuation",
    "object",
    "routing",
];

/// What a vendor's name may be given that is no key.
const OTHER_VALUES: [&str; 14] = [
    "sha", "hash", "checksum", "digest", "commit", "rev", "version", "name", "url", "path", "file", "size",
    "public", "_id",
];

/// Words that stand for a value.
const PLACEHOLDERS: [&str; 14] = [
    "your",
    "example",
    "xxx",
    "...",
    "changeme",
    "change-me",
    "placeholder",
    "masked",
    "redacted",
    "dummy",
    "fake",
    "sample",
    "insert",
    "replace",
];

/// Words that describe a value, or are the user's of a manual.
const TYPES: [&str; 22] = [
    "string",
    "str",
    "text",
    "null",
    "none",
    "undefined",
    "required",
    "optional",
    "secret",
    "token",
    "true",
    "false",
    // As translations have it.
    "password",
    "passwort",
    "kennwort",
    "contraseña",
    "mot de passe",
    "wachtwoord",
    "senha",
    "пароль",
    "密码",
    "パスワード",
];

impl Found<'_> {
    /// The name, from where it begins to the sign.
    fn name(&self) -> String {
        let before = self.text.as_bytes()[..self.start].iter().rev().take(40);
        let start = self.start - before.take_while(|byte| is_in_name(**byte)).count();
        self.text[start..self.at].to_lowercase()
    }

    /// Does the name begin before its last word, as `secret_key` does?
    fn is_compound(&self) -> bool {
        match self.text.as_bytes()[..self.start] {
            [.., before, b'_' | b'-' | b'.'] => before.is_ascii_alphanumeric(),
            [.., before] => before.is_ascii_alphanumeric(),
            [] => false,
        }
    }

    fn is_quoted(&self) -> bool {
        self.text.as_bytes()[..self.at].last().is_some_and(|byte| b"\"'`".contains(byte))
    }

    /// Is the value, where it has no quotation marks, code?
    fn is_code(&self) -> bool {
        let next = self.text.as_bytes().get(self.at + self.value.len());
        let is_path = is_file(self.value) || (!self.is_environment() && is_path(self.value));
        !self.is_quoted() && (self.sign == "," || matches!(next, Some(b'(' | b'[')) || is_path)
    }

    fn is_password(&self) -> bool {
        let value = self.value.to_lowercase();
        // What is called a phrase may have words; what an environment has may too.
        let may_have_words = self.sign == "=" || self.name().contains("phrase");
        let is_sentence = value.contains(char::is_whitespace) && !(may_have_words && value.len() < 40);
        if is_sentence || TYPES.contains(&value.as_str()) || self.is_code() {
            return false;
        }
        let is_name = is_identifier(self.value) && value.contains("pass") && !has_digit(&value);
        let is_plain = is_identifier(self.value) && !has_digit(self.value);
        match self.is_quoted() {
            true => !self.sign.starts_with(',') || self.is_key(),
            // `PASSWORD=value`, as environments and shells have it.
            false if self.sign == "=" => !is_name && (!is_plain || self.is_environment()),
            false if self.sign.is_empty() => !is_plain && !is_name,
            false => {
                let is_case = |is: fn(&u8) -> bool| self.value.bytes().any(|byte| is(&byte));
                let has_cases = is_case(u8::is_ascii_uppercase) && is_case(u8::is_ascii_lowercase);
                let is_chosen = has_cases && !is_identifier(self.value);
                self.value.len() >= 8
                    && (is_mixed(&value) || is_chosen || value.bytes().all(|byte| byte.is_ascii_digit()))
            }
        }
    }

    /// Is the name all in capitals?
    fn is_environment(&self) -> bool {
        !self.text[self.start..self.at].bytes().any(|byte| byte.is_ascii_lowercase())
    }

    fn is_key(&self) -> bool {
        let value = self.value;
        // `:secret:` is a part of a name, as in `arn:aws:secretsmanager:eu-west-1:1:secret:prod/db`.
        let is_part = self.sign == ":" && self.text[..self.start].ends_with(':');
        let is_random = value.len() >= 8 && is_mixed(value) && !value.contains(' ');
        // In an environment people choose words too.
        let is_random = is_random && (!is_words(value) || (self.sign == "=" && self.is_environment()));
        is_random && !is_part && !self.is_code()
    }

    /// Is what comes after `user:` the port of a host?
    fn is_port(&self) -> bool {
        let host = &self.text[self.start..self.at - 1].trim_start_matches("://");
        let digits = self.value.bytes().take_while(u8::is_ascii_digit).count();
        let rest = &self.value[digits..];
        let is_web = self.text[..self.start].ends_with("http") || self.text[..self.start].ends_with("https");
        let is_host = is_web || host.contains('.') || *host == "localhost";
        (1..=5).contains(&digits) && (rest.starts_with(['/', '?', '#']) || (rest.is_empty() && is_host))
            || TYPES.contains(&self.value)
            || ["password", "pass", "pw"].contains(&self.value)
    }
}

fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

fn has_digit(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Letters and digits: neither a word nor a number.
fn is_mixed(value: &str) -> bool {
    has_digit(value) && value.chars().any(char::is_alphabetic)
}

fn is_identifier(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Digits, small letters, and capitals or signs.
fn is_strong(value: &str) -> bool {
    let value = value.trim_end_matches(['.', ',', ';', ':', ')']);
    let other = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_punctuation();
    let has_all = value.bytes().any(other) && value.bytes().any(|byte| byte.is_ascii_lowercase());
    let is_long = value.len() >= 20 && is_mixed(value);
    value.len() >= 6 && has_digit(value) && (has_all || is_long) && !is_words(value)
}

/// A word with a capital, and a number, but no name of a code such as `Base64`.
fn is_chosen(value: &str) -> bool {
    let letters = value.trim_end_matches(|c: char| c.is_ascii_digit());
    let has_case = value.chars().any(char::is_lowercase) && value.chars().any(char::is_uppercase);
    let is_code = letters.len() <= 6 && is_identifier(value);
    value.len() >= 6 && has_case && letters.len() < value.len() && !is_code && !value.contains('/')
}

/// Words and short numbers with signs between them, such as `users-2024-page-3` or `level2`.
fn is_words(value: &str) -> bool {
    value.split(|c: char| "-_./:, ".contains(c)).all(|part| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        part.len() - letters.len() <= 4 && letters.chars().all(char::is_alphabetic)
    })
}

/// A path of a file, or of names in code, such as `config.token2`.
fn is_path(value: &str) -> bool {
    let is_name = |part: &str| {
        !part.starts_with(|c: char| c.is_ascii_digit())
            && part.bytes().filter(u8::is_ascii_digit).count() <= 3
            && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | ':' | '?' | '!' | '*'))
    };
    is_file(value) || (value.contains('.') && value.split('.').all(is_name))
}

fn is_file(value: &str) -> bool {
    value.starts_with(['/', '.', '~'])
}

/// What stands for a value that is elsewhere, or was masked already.
fn is_placeholder(value: &str) -> bool {
    let low = value.to_lowercase();
    (value.starts_with(['$', '<', '{', '%', '[', '*', '@']) && !value.ends_with("=}"))
        || value.contains("${")
        || value.contains("{{")
        || has_any(&low, &PLACEHOLDERS)
}

/// Shannon's, in bits per byte.
fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let length = value.len().max(1) as f64;
    let share = |count: &u32| f64::from(*count) / length;
    counts.iter().filter(|count| **count > 0).map(share).map(|share| -share * share.log2()).sum()
}
