// The line with which a host joins. The token goes through a pipe: words of a command are seen in the list of processes.

export const joinLine = (serviceUrl: string, token: string): string =>
  `printf %s '${token}' | svc3 agent --api-url ${serviceUrl} --join-token-stdin`
