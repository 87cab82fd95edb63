import { createHash } from 'node:crypto'

/**
 * Makes the ETag of prices as they are described to a caller: `"<version>.<digest>"`. A change compares the version
 * alone (If-Match). The digest tells apart, for If-None-Match, what callers see who may know of other rules, and what
 * the split was.
 */
export function makePricingTag(described: { readonly version: string }): string {
  const digest = createHash('sha256').update(JSON.stringify(described)).digest('base64url')
  return `"${described.version}.${digest.slice(0, 16)}"`
}

/** Reads the version of a tag: an ETag of prices, or the bare version, with or without quotes. */
export function readVersion(tag: string): string {
  return tag.replace(/^"(.*)"$/, '$1').split('.')[0] ?? ''
}
