import { makeInvalidFault } from '../base/fault.ts'

/**
 * Refuses a query string that is no UTF-8 in percent-encoding, such as `%ff`: the framework leaves it as it is, and a
 * parameter would have a text that nobody has sent.
 */
export function refuseUndecodable(queryText: string): void {
  if (!queryText.includes('%')) return
  for (const part of queryText.split('&')) {
    if (isDecodable(part)) continue
    const [name = ''] = part.split('=', 1)
    const pointer = isDecodable(name) ? `/query/${decodeURIComponent(name)}` : '/query'
    throw makeInvalidFault(pointer, 'must be UTF-8 in percent-encoding')
  }
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
