/**
 * Says whether a header (If-None-Match, If-Match) names one of these tags, or any (`*`). Proxies that compress answers
 * make a tag a weak one, which names the same here.
 */
export function hasTag(
  header: string | readonly string[] | undefined,
  isTag: (tag: string) => boolean,
): boolean {
  if (header === undefined) return false
  const named = String(header)
    .split(',')
    .map((one) => one.trim().replace(/^W\//, ''))
  return named.some((one) => one === '*' || isTag(one))
}
