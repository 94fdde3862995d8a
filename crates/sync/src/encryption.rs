//! Encryption of packs, in the format of age (<https://age-encryption.org/v1>): to this machine's own key, and to those in
//! the setting `syncRecipients`.
//!
//! The own key is made when it is first needed. It is in a file in the folder of databases, and never anywhere else.

use std::io::{Read as _, Write as _};
use std::path::Path;

use age::secrecy::ExposeSecret as _;
use age::x25519::{Identity, Recipient};
use age::{DecryptError, Decryptor, Encryptor};

use super::machine;
use lcm_model::error::{Error, Result};
use lcm_model::text::one_line;

/// The file with this machine's key, in the form of `age-keygen`.
const FILE: &str = "machine-key";
/// What every age file begins with.
pub(crate) const MAGIC: &[u8] = b"age-encryption.org/";
/// What the last line of its header begins with.
const END: &[u8] = b"\n--- ";
/// The longest header that is read, in bytes: the time it takes grows with the square.
const HEADER: usize = 16 * 1024;
/// The most recipients, this machine included; each takes a hundred bytes of a header.
const MOST: usize = 100;
/// In the place of recipients: this machine does not encrypt, even where others do.
pub(crate) const NONE: &str = "none";

/// This machine's key.
pub(crate) struct Key(Identity);

/// Whether a pack is encrypted.
pub(crate) fn is_encrypted(pack: &[u8]) -> bool {
    pack.starts_with(MAGIC)
}

/// Checks the keys of the setting `syncRecipients`.
///
/// # Errors
/// When one of them is no key.
pub fn check(others: &[String]) -> Result<()> {
    if others == [NONE] {
        return Ok(());
    }
    if others.len() >= MOST {
        return Err(Error::invalid(format!("syncRecipients has {MOST} keys or more: nothing was done")));
    }
    parsed(others).map(drop)
}

/// All that can read what this machine writes, itself included, in order; none if `others` is empty.
///
/// # Errors
/// When one of them is no key.
pub(crate) fn recipients(db_dir: &Path, others: &[String]) -> Result<Vec<String>> {
    check(others)?;
    if others.is_empty() || others == [NONE] {
        return Ok(Vec::new());
    }
    let mut all = [&[Key::of(db_dir)?.recipient()], others].concat();
    all.sort();
    all.dedup();
    Ok(all)
}

fn parsed(recipients: &[String]) -> Result<Vec<Recipient>> {
    // It may be a secret one, which no message may show.
    let wrong = |at| {
        Error::invalid(format!(
            "number {at} in syncRecipients is no key, age1…, as pi-lcm sync --key or age-keygen prints it: nothing was done"
        ))
    };
    (1..).zip(recipients).map(|(at, key)| key.parse().map_err(|_| wrong(at))).collect()
}

/// Whether a pack can be encrypted to these.
pub(crate) fn are_recipients(keys: &[String]) -> bool {
    keys.len() <= MOST && parsed(keys).is_ok()
}

/// Encrypts a pack.
///
/// # Errors
/// When one of the recipients is no key.
pub(crate) fn encrypted(pack: &[u8], recipients: &[String]) -> Result<Vec<u8>> {
    let recipients = parsed(recipients)?;
    let recipients = recipients.iter().map(|recipient| recipient as &dyn age::Recipient);
    let failed = |error: &dyn std::fmt::Display| Error::store(format!("a pack can't be encrypted: {error}"));
    let encryptor = Encryptor::with_recipients(recipients).map_err(|error| failed(&error))?;
    let mut writer = encryptor.wrap_output(Vec::with_capacity(pack.len())).map_err(|error| failed(&error))?;
    writer.write_all(pack).and_then(|()| writer.finish()).map_err(|error| failed(&error))
}

impl Key {
    /// The key of the machine with this folder of databases.
    ///
    /// # Errors
    /// When the file with it can't be read or written.
    pub fn of(db_dir: &Path) -> Result<Self> {
        let new = || Identity::generate().to_string().expose_secret().to_owned();
        let is_key = |line: &str| line.parse::<Identity>().is_ok();
        let line = machine::kept(db_dir, FILE, is_key, new)?;
        line.parse().map(Self).map_err(Error::store)
    }

    /// What others encrypt to.
    pub fn recipient(&self) -> String {
        self.0.to_public().to_string()
    }

    /// Opens an encrypted pack; `None` if it is not encrypted to this key.
    ///
    /// # Errors
    /// When it is no file of age's.
    pub fn decrypted(&self, pack: &[u8]) -> Result<Option<Vec<u8>>> {
        let wrong = |error: &dyn std::fmt::Display| {
            Error::invalid(format!("it can't be decrypted: {}", one_line(&error.to_string(), 100)))
        };
        let header = &pack[..pack.len().min(HEADER)];
        if !header.windows(END.len()).any(|bytes| bytes == END) {
            return Err(wrong(&"its header has no end"));
        }
        let decryptor = Decryptor::new_buffered(pack).map_err(|error| wrong(&error))?;
        let mut reader = match decryptor.decrypt(std::iter::once(&self.0 as &dyn age::Identity)) {
            Err(DecryptError::NoMatchingKeys) => return Ok(None),
            reader => reader.map_err(|error| wrong(&error))?,
        };
        let mut bytes = Vec::with_capacity(pack.len());
        reader.read_to_end(&mut bytes).map_err(|error| wrong(&error))?;
        Ok(Some(bytes))
    }
}
