//! Decides whether a value is a secret, rather than code, a name or a placeholder.

pub(super) struct PatternMatch<'a> {
    pub text: &'a str,
    /// Where the match starts in the text: at its keyword.
    pub start: usize,
    /// The assignment sign, such as `: `; empty if the pattern has none.
    pub sign: &'a str,
    pub value: &'a str,
    /// Where the value starts in the text.
    pub at: usize,
}

/// The condition for masking a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Condition {
    /// At least this many bits per character.
    Shape(f64),
    /// A value assigned to a vendor's name.
    Named,
    /// Also a plain word, since people choose passwords.
    Password,
    /// Letters and digits, like a key.
    Secret,
    /// The same, if the name is more than `key`.
    Key,
    /// Like a generated key, since the position says little.
    Random,
    /// Hard to guess, within a sentence.
    Strong,
    /// The password in a URL, not a port.
    Url,
    /// Anything but a placeholder.
    Word,
    /// An error in the table: masks whatever the pattern finds.
    Unknown,
}

impl Condition {
    /// Parses the third column of a table.
    pub(super) fn parse(word: &str) -> Self {
        match word {
            "password" => Self::Password,
            "secret" => Self::Secret,
            "key" => Self::Key,
            "random" => Self::Random,
            "strong" => Self::Strong,
            "url" => Self::Url,
            "word" => Self::Word,
            number => number.parse().map_or(Self::Unknown, Self::Shape),
        }
    }

    pub(super) fn is_secret(self, found: &PatternMatch<'_>) -> bool {
        let value = found.value;
        match self {
            Self::Unknown | Self::Shape(0.0) => true,
            Self::Shape(bits) => entropy(value) >= bits && !(value.contains('-') && is_words(value)),
            Self::Named => is_mixed(value) && entropy(value) >= 3.0,
            _ if is_placeholder(value) => false,
            Self::Word => true,
            Self::Password => found.is_password(),
            Self::Secret => found.is_key() && !found.names_other(),
            Self::Key => found.is_key() && found.is_compound() && !found.names_other(),
            Self::Random => {
                found.is_key()
                    && value.len() >= 16
                    // Hex digits need more characters for the same entropy.
                    && entropy(value) >= if value.len() < 32 { 3.5 } else { 3.0 }
                    && !has_any(&found.name(), &OTHER_VALUES)
            }
            Self::Strong => is_strong(value) && !has_any(&found.name(), &OF_SECRETS),
            Self::Url => !found.is_port(),
        }
    }
}

/// What precedes `key` or `token` in names of public values, or of identifiers.
const OTHER_NAMES: [&str; 14] = [
    "public", "publishable", "cache", "primary", "foreign", "idempotency", "partition", "sort", "shard",
    "restore", "page", "continuation", "object", "routing",
];

/// Values assigned to a vendor's name that are not keys.
const OTHER_VALUES: [&str; 20] = [
    "sha", "hash", "checksum", "digest", "commit", "rev", "version", "name", "url", "path", "file", "size",
    "public", "_id", " id", "clientid", "projectid", "appid", "pk_", "fingerprint",
];

/// What a sentence may say about a secret that is not one.
const OF_SECRETS: [&str; 6] = ["hash", "fingerprint", "public", "checksum", "digest", "length"];

/// Words for placeholders.
const PLACEHOLDERS: [&str; 14] = [
    "your", "example", "xxx", "...", "changeme", "change-me", "placeholder", "masked", "redacted", "dummy",
    "fake", "sample", "insert", "replace",
];

/// Words that describe a value, are sample values in a manual, or label a field in some language.
const TYPES: &str = " string str text boolean any unset missing disabled enabled hidden empty null none undefined required optional secret token true false password passwd \
    pass pw passphrase passwort kennwort contraseña contrasena clave senha wachtwoord lösenord passord adgangskode \
    salasana hasło heslo jelszó parola parolă şifre пароль κωδικός סיסמה 密码 密碼 口令 パスワード 비밀번호 암호 รหัสผ่าน ";

impl PatternMatch<'_> {
    /// The name, from its start to the sign.
    fn name(&self) -> String {
        self.name_before() + &self.text[self.start..self.at].to_lowercase()
    }

    fn name_before(&self) -> String {
        let before = self.text.as_bytes()[..self.start].iter().rev().take(40);
        let is_in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
        let start = self.start - before.take_while(is_in_name).count();
        self.text[start..self.start].to_lowercase()
    }

    /// Whether the word before the keyword makes it another thing's name.
    fn names_other(&self) -> bool {
        let before = self.name_before();
        let before = before.trim_end_matches(['_', '-', '.']);
        before.contains("public") || OTHER_NAMES.iter().any(|word| before.ends_with(word))
    }

    /// Whether the unquoted value is the rest of its line.
    fn ends_line(&self) -> bool {
        let rest = &self.text[self.at + self.value.len()..];
        rest.is_empty() || rest.starts_with(['\r', '\n'])
    }

    /// Whether the name has several words, like `secret_key`.
    fn is_compound(&self) -> bool {
        match self.text.as_bytes()[..self.start] {
            [.., before, b'_' | b'-'] => before.is_ascii_alphanumeric(),
            [.., before] => before.is_ascii_alphanumeric(),
            [] => false,
        }
    }

    fn is_quoted(&self) -> bool {
        self.text.as_bytes()[..self.at].last().is_some_and(|byte| b"\"'`".contains(byte))
    }

    /// Whether an unquoted value is code.
    fn is_code(&self) -> bool {
        let next = self.text.as_bytes().get(self.at + self.value.len());
        !self.is_quoted()
            // `password::hash`.
            && (self.value.starts_with(':')
                || self.sign.starts_with(',')
                || self.sign == "("
                || matches!(next, Some(b'(' | b'['))
                || (is_path(self.value.trim_end_matches('.')) && !self.is_argument()))
    }

    /// Whether the value is a passphrase after `password=` in a command, or the rest of a line in a
    /// configuration.
    fn is_argument(&self) -> bool {
        let is_config = [":", "="].contains(&self.sign.trim()) && self.ends_line();
        (self.sign == "=" || is_config) && is_dotted(self.value)
    }

    fn is_password(&self) -> bool {
        let value = self.value.to_lowercase();
        let is_sentence = value.contains(char::is_whitespace);
        if is_sentence || self.is_code() || value.contains("::") {
            return false;
        }
        let is_name = is_identifier(self.value) && value.contains("pass");
        let is_plain = is_identifier(self.value) && !has_digit(self.value);
        match self.is_quoted() {
            // An argument, or a cell of a table.
            true => {
                !self.sign.trim_start().starts_with([',', '(', '|'])
                    || self.is_key()
                    || is_chosen(self.value)
                    || (self.sign == "(" && has_digit(&value) && is_identifier(&value))
            }
            // `PASSWORD=value`, as in environments and shells.
            false if self.sign == "=" => !is_name && (!is_plain || self.is_environment() || self.ends_line()),
            false if self.sign.is_empty() => !is_plain && !is_name,
            false => {
                let is_number = || value.bytes().all(|byte| byte.is_ascii_digit());
                // As in YAML.
                let is_alone = || {
                    let is_config = [":", "="].contains(&self.sign.trim()) && self.ends_line();
                    let is_value = !is_identifier(&value) || self.is_environment();
                    is_config && is_value && !is_name && !value.contains(['/', ':'])
                };
                let is_odd = || value.len() >= 6 && is_mixed(&value) && !is_words(&value);
                is_odd() || (value.len() >= 8 && (is_mixed(&value) || is_number() || is_alone()))
            }
        }
    }

    /// Whether the name is all uppercase.
    fn is_environment(&self) -> bool {
        !self.text[self.start..self.at].bytes().any(|byte| byte.is_ascii_lowercase())
    }

    fn is_key(&self) -> bool {
        let value = self.value;
        value.len() >= 8
            && is_mixed(value)
            && !value.contains(' ')
            && !value.contains("://")
            && !is_words(value)
            && !self.is_code()
    }

    /// Whether the text after `user:` is the port of a host.
    fn is_port(&self) -> bool {
        let host = &self.text[self.start..self.at - 1].trim_start_matches("://");
        let digits = self.value.bytes().take_while(u8::is_ascii_digit).count();
        let rest = &self.value[digits..];
        let is_host = host.contains('.') || *host == "localhost";
        (1..=5).contains(&digits) && (rest.starts_with(['/', '?', '#']) || (rest.is_empty() && is_host))
    }
}

fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

fn has_digit(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Both letters and digits: neither a word nor a number.
fn is_mixed(value: &str) -> bool {
    has_digit(value) && value.chars().any(char::is_alphabetic)
}

fn is_identifier(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Like a chosen password: uppercase, lowercase, and a digit or a sign.
fn is_chosen(value: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| value.as_bytes().iter().any(kind);
    has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(|byte| byte.is_ascii_digit() || b"-!#$%&*+?@^~=".contains(byte))
        && !value.contains([' ', '/', '.', ':', '\\', '<', '{', '('])
}

/// Digits, lowercase letters, and uppercase letters or signs.
fn is_strong(value: &str) -> bool {
    let value = value.trim_end_matches(['.', ',', ';', ':', ')']);
    let other = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_punctuation();
    let has_all = value.bytes().any(other) && value.bytes().any(|byte| byte.is_ascii_lowercase());
    let is_long = value.len() >= 20 && is_mixed(value);
    let is_odd = value.len() >= 8;
    let has_case =
        value.bytes().any(|byte| byte.is_ascii_uppercase()) && !value.contains(['.', '/', ':', ',']);
    let has_case = has_case || is_phrase(value);
    value.len() >= 6 && has_digit(value) && (has_all || is_long || is_odd) && (has_case || !is_words(value))
}

/// A passphrase that is not a name in code, even where such names are common: `Blue.tractor9`,
/// `blue.tractor.9`.
fn is_phrase(value: &str) -> bool {
    let is_odd = value.matches('.').count() > 1 || value.chars().any(|c| c.is_uppercase() || !c.is_ascii());
    is_odd && is_dotted(value)
}

/// Words and a number with dots between them, like a chosen passphrase: `tractor.blue9`.
fn is_dotted(value: &str) -> bool {
    let mut parts = value.split('.');
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = |part: &str| part.chars().filter(|c| c.is_alphabetic()).count() >= 3;
    value.contains('.')
        && has_digit(value)
        && value.chars().all(|c| c.is_alphanumeric() || c == '.')
        && parts.clone().any(is_word)
        && parts.all(|part| !part.is_empty() && (is_number(part) || is_word(part)))
}

/// Words and short numbers separated by signs, such as `users-2024-page-3` or `level2`.
fn is_words(value: &str) -> bool {
    value.split(|c: char| "-_./:, ".contains(c)).all(|part| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let pairs = part.as_bytes().windows(2);
        let humps = pairs.filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()).count();
        // No word, even in camel case, has a hump every four letters.
        let is_random = part.len() >= 8 && humps * 4 >= part.len();
        !is_random && part.len() - letters.len() <= 4 && letters.chars().all(char::is_alphabetic)
    })
}

/// A file path, or a path of names in code, such as `config.token2`.
fn is_path(value: &str) -> bool {
    let is_name = |part: &str| {
        !part.starts_with(|c: char| c.is_ascii_digit())
            && part.bytes().filter(u8::is_ascii_digit).count() <= 3
            && part
                .as_bytes()
                .windows(2)
                .filter(|pair| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic())
                .count()
                <= 1
            && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | ':' | '?' | '!' | '*'))
    };
    value.starts_with(['/', '.', '~'])
        || (value.contains('.') && value.split('.').all(is_name) && !is_phrase(value))
}

/// A placeholder, or an already masked value.
fn is_placeholder(value: &str) -> bool {
    let low = value.to_lowercase();
    (value.starts_with(['$', '<', '{', '%', '[', '*', '@']) && !value.ends_with("=}"))
        || value.contains("${")
        || value.contains("{{")
        || has_any(&low, &PLACEHOLDERS)
        || (!low.contains(' ') && TYPES.contains(&format!(" {} ", low.trim_end_matches([':', '*']))))
}

/// Shannon entropy, in bits per byte.
fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let length = value.len().max(1) as f64;
    let share = |count: &u32| f64::from(*count) / length;
    counts.iter().filter(|count| **count > 0).map(share).map(|share| -share * share.log2()).sum()
}
