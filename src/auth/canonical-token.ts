// Whether a signed token is spelled as its signer spelled it. Decoders of base64url forgive padding, white space and bits
// behind the end: the same token would have many texts, and one that may be used once could be used again.
export const isCanonicalToken = (token: string): boolean =>
  token.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
