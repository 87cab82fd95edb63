/** Matches text that looks like a key of an application or the operator, put anywhere in a URL by mistake. */
const keyText = /((?:app|op)_[A-Za-z0-9_-]{4})[A-Za-z0-9_-]{20,}/g

/** Masks the keys in a path with its query, for logs and messages; `secret` names the parameters that hold any. */
export function maskUrl(url: string, secret: readonly string[] = ['api_key']): string {
  const mark = url.indexOf('?')
  if (mark < 0) return url.replace(keyText, '$1***')
  const query = url
    .slice(mark + 1)
    .split('&')
    .map((part) => {
      const name = decodeName(part)
      return secret.includes(name) ? `${name}=***` : part
    })
    .join('&')
  return `${url.slice(0, mark)}?${query}`.replace(keyText, '$1***')
}

/** Decodes the parameter's name as the server does: `api%5Fkey` is `api_key` too. */
function decodeName(part: string): string {
  const name = part.split('=', 1)[0] ?? ''
  try {
    return decodeURIComponent(name.replaceAll('+', ' '))
  } catch {
    return name
  }
}
