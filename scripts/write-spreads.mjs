import { parse } from 'acorn'
import { full } from 'acorn-walk'

/**
 * Writes `{ ...one, two }` as `{ ...null, ...one, two }`, which means the same. Where the spread comes first, V8 (of
 * Node.js 20) gives each object that is made a hidden class of its own as soon as it gets a member that `one` lacks: that
 * takes a microsecond, and whoever reads the object never finds its members in a cache (decision 122).
 */
export function writeSpreads(text) {
  const places = []
  full(parse(text, { ecmaVersion: 'latest', sourceType: 'module' }), (node) => {
    if (node.type !== 'ObjectExpression') return
    const [first, ...others] = node.properties
    if (first?.type === 'SpreadElement' && others.length > 0) places.push(first.start)
  })
  let written = ''
  let from = 0
  for (const place of places.sort((a, b) => a - b)) {
    written += `${text.slice(from, place)}...null, `
    from = place
  }
  return written + text.slice(from)
}
