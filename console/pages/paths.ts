// Paths of pages. Names are escaped only here.
export interface Named {
  readonly namespace: string
  readonly name: string
}

const part = encodeURIComponent

/** A list page with its filters set. */
export const listPath = (path: string, filters: Readonly<Record<string, string>>): string => {
  const search = new URLSearchParams(filters).toString()
  return search === '' ? path : `${path}?${search}`
}

export const vmPath = ({ namespace, name }: Named): string => `/vms/${part(namespace)}/${part(name)}`
export const nodePath = ({ namespace, name }: Named): string => `/nodes/${part(namespace)}/${part(name)}`
export const poolPath = ({ namespace, name }: Named): string => `/pools/${part(namespace)}/${part(name)}`
export const runnerPoolPath = ({ namespace, name }: Named): string => `/runner-pools/${part(namespace)}/${part(name)}`
export const imagePath = (kind: 'image' | 'iso', name: string): string => `/${kind}s/${part(name)}`
