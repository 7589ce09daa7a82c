// Settings of a private apt: separate state and cache, only Debian's packages, only the guest's architecture.
import type { Architecture } from './architectures.ts'

/** Read after the machine's settings, so that its proxies and keys apply. */
export const aptConfiguration = (folder: string, architecture: Architecture): string => `
Dir::State "${folder}/state/";
Dir::State::status "${folder}/status";
Dir::Cache "${folder}/cache/";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "${folder}/sources/";
Dir::Etc::preferences "${folder}/preferences";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "${architecture}";
#clear APT::Architectures;
APT::Architectures { "${architecture}"; };
// Hooks and further indexes of the machine belong to the machine's state.
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::DEP-11-icons-small;
#clear Acquire::IndexTargets::deb::DEP-11-icons;
#clear Acquire::IndexTargets::deb::DEP-11-icons-hidpi;
#clear Acquire::IndexTargets::deb::DEP-11-icons-large;
#clear Acquire::IndexTargets::deb::DEP-11-icons-large-hidpi;
#clear Acquire::IndexTargets::deb::CNF;
Acquire::Languages "none";
Acquire::Retries "3";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
// apt's download user could not write to this folder.
APT::Sandbox::User "${process.getuid?.() === 0 ? 'root' : ''}";
`

export const preferences = `Package: *
Pin: release o=Debian
Pin-Priority: 500

Package: *
Pin: release o=*
Pin-Priority: -1
`
