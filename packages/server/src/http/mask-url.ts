/** What looks like a key of an application or the operator, wherever in a URL it was put by mistake. */
const keyText = /((?:app|op)_[A-Za-z0-9_-]{4})[A-Za-z0-9_-]{20,}/g

/** A path with its query, without the keys in it: for logs and messages. */
export function maskedUrl(url: string): string {
  const mark = url.indexOf('?')
  if (mark < 0) return url.replace(keyText, '$1***')
  const query = url
    .slice(mark + 1)
    .split('&')
    .map((part) => (nameOf(part) === 'api_key' ? 'api_key=***' : part))
    .join('&')
  return `${url.slice(0, mark)}?${query}`.replace(keyText, '$1***')
}

/** The parameter's name as the server reads it: `api%5Fkey` is `api_key` too. */
function nameOf(part: string): string {
  const name = part.split('=', 1)[0] ?? ''
  try {
    return decodeURIComponent(name.replaceAll('+', ' '))
  } catch {
    return name
  }
}
