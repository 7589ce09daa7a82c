// Whether a signed token is in canonical base64url. Decoders ignore padding, white space and surplus bits, so the same token
// would otherwise have many spellings, and a token that is valid once could be used again.
export const isCanonicalToken = (token: string): boolean =>
  token.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
