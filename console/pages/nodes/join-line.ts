// The line with which a host joins: one string has the addresses of the servers, the key they are known by, and a secret. It goes
// through a pipe, because words of a command are seen in the list of processes.

export const joinLine = (join: string): string => `printf %s '${join}' | svc3 agent --join-token-stdin`
