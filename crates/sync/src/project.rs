//! What a project is called at a sync target: its git remote, the same on every machine.

use std::path::{Path, PathBuf};

use lcm_model::config::ProjectIdentity;
use lcm_model::error::{Error, Result};
use lcm_model::files;
use lcm_model::ids::Hash;
use lcm_store::{project_of, real_path};

/// No git configuration is larger.
const CONFIG: u64 = 1024 * 1024;
/// The longest name of a folder that all file systems take, less what may be added.
const LONGEST: usize = 200;

/// The folder of a project at a target: of `name` if the user gave one, else of the git remote of `cwd`.
///
/// # Errors
/// When there is neither.
pub(crate) fn folder(name: &str, cwd: &str, identity: ProjectIdentity) -> Result<String> {
    let name = if name.trim().is_empty() {
        remote_of(Path::new(cwd), identity).ok_or_else(|| {
            Error::unnamed(format!(
                "{cwd} has no git remote to name the project by: name it with /lcm sync TARGET --name NAME, or for good with /lcm settings syncProject=NAME --project, if Pi trusts this project"
            ))
        })?
    } else {
        name.to_owned()
    };
    match as_folder(&normalized(&name)) {
        folder if folder.is_empty() => Err(Error::invalid(format!("{name} is no name for a project"))),
        folder => Ok(folder),
    }
}

/// The address of the remote `origin`, or of the only one, with the folder's place in the repository if folders are projects.
fn remote_of(cwd: &Path, identity: ProjectIdentity) -> Option<String> {
    let repository = PathBuf::from(project_of(cwd, ProjectIdentity::Git));
    let url = remote_in(&files::read_text(&configuration(&repository)?, CONFIG).ok()?)?;
    let cwd = PathBuf::from(real_path(cwd));
    let inside = cwd.strip_prefix(&repository).unwrap_or(Path::new(""));
    Some(match identity {
        ProjectIdentity::Cwd if inside != Path::new("") => {
            format!("{}//{}", normalized(&url), inside.display())
        }
        _ => url,
    })
}

/// The file with a repository's configuration: of a main folder, a submodule or a bare repository.
fn configuration(repository: &Path) -> Option<PathBuf> {
    let git = repository.join(".git");
    let folder = if git.is_file() {
        let text = files::read_text(&git, CONFIG).ok()?;
        repository.join(text.strip_prefix("gitdir:")?.trim())
    } else if git.is_dir() {
        git
    } else {
        repository.to_owned()
    };
    Some(folder.join("config")).filter(|config| config.is_file())
}

/// The address of `origin`, or of the only remote.
fn remote_in(configuration: &str) -> Option<String> {
    let (mut remotes, mut section): (Vec<(String, String)>, Option<String>) = (Vec::new(), None);
    for line in configuration.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[') {
            let name = head.strip_prefix("remote \"").and_then(|rest| rest.split('"').next());
            section = name.map(ToOwned::to_owned);
        } else if let (Some(name), Some((key, url))) = (&section, line.split_once('='))
            && key.trim() == "url"
        {
            remotes.push((name.clone(), url.trim().trim_matches('"').to_owned()));
        }
    }
    let only = if remotes.len() == 1 { remotes.first() } else { None };
    remotes.iter().find(|(name, _)| name == "origin").or(only).map(|(_, url)| url.clone())
}

/// One spelling for the addresses of a repository: `git@github.com:ann/shop.git` and `https://github.com/ann/shop` are
/// `github.com/ann/shop`.
fn normalized(url: &str) -> String {
    let url = url.trim();
    let (has_scheme, rest) = url.split_once("://").map_or((false, url), |(_, rest)| (true, rest));
    let (host, path) = match rest.split_once(if has_scheme { '/' } else { ':' }) {
        Some((host, path)) if has_scheme || !host.contains('/') => (host, path),
        _ => ("", rest),
    };
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = if has_scheme { host.split(':').next().unwrap_or_default() } else { host };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    if host.is_empty() { path.to_owned() } else { format!("{}/{path}", host.to_lowercase()) }
}

/// A name as the name of one folder: `github.com~ann~shop`.
fn as_folder(name: &str) -> String {
    let mut folder = String::new();
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'/' => folder.push('~'),
            b'.' if at == 0 => folder.push_str("%2E"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => folder.push(char::from(byte)),
            byte => folder.push_str(&format!("%{byte:02X}")),
        }
    }
    if folder.len() <= LONGEST {
        return folder;
    }
    let hash = Hash::plain(name.as_bytes()).to_string();
    format!("{}-{}", &folder[..LONGEST - 17], &hash[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_one_name() {
        for url in [
            "git@github.com:ann/shop.git",
            "https://github.com/ann/shop",
            "https://ann:secret@GitHub.com/ann/shop.git/",
            "ssh://git@github.com:22/ann/shop.git",
            "git://github.com/ann/shop",
            "github.com/ann/shop",
        ] {
            assert_eq!(as_folder(&normalized(url)), "github.com~ann~shop", "{url}");
        }
        assert_eq!(as_folder(&normalized("/srv/git/shop.git")), "srv~git~shop");
        assert_eq!(as_folder("../x y"), "%2E.~x%20y");
        assert_eq!(as_folder(&"x".repeat(300)).len(), LONGEST);
    }

    #[test]
    fn the_remote_is_origin_or_the_only_one() {
        let origin = "[core]\n\tbare = false\n[remote \"up\"]\n\turl = a\n[remote \"origin\"]\n\turl = b\n[branch \"main\"]\n\turl = c\n";
        assert_eq!(remote_in(origin).as_deref(), Some("b"));
        assert_eq!(remote_in("[remote \"up\"]\nurl = \"a\"").as_deref(), Some("a"));
        assert_eq!(remote_in("[remote \"up\"]\nurl = a\n[remote \"other\"]\nurl = b"), None);
    }
}
