// Checks the words of the code and of the pages: names of functions, first words of comments and sentences, and terms
// that GLOSSARY.md retired; and that links of the pages lead somewhere. Exits 1 and names every place.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findPageProblems } from './page-problems.mjs'

const roots = ['packages', 'tests', 'bench', 'scripts', 'examples']
const glossary = readFileSync('GLOSSARY.md', 'utf8')

/** Names that the glossary's last table retires, as whole identifiers. */
const retired = new Map(
  section('Retired names').flatMap(([names, instead]) =>
    names.split(', ').map((name) => [name.replaceAll('`', ''), instead]),
  ),
)
/** The first words of functions. */
const verbs = new Set(
  section('Verbs').flatMap(([words]) => words.split(', ').map((word) => word.replaceAll('`', ''))),
)

const problems = [
  ...roots.filter(existsSync).flatMap(sourceFiles).flatMap(findProblems),
  ...findPageProblems(retired),
]
for (const problem of problems) console.error(problem)
console.log(
  `words: ${verbs.size} verbs, ${retired.size} retired names, ${problems.length} problems`,
)
process.exitCode = problems.length === 0 ? 0 : 1

function findProblems(file) {
  const text = readFileSync(file, 'utf8')
  const at = (index) => `${file}:${text.slice(0, index).split('\n').length}`
  const found = []
  const find = (pattern, problem) => {
    for (const match of text.matchAll(pattern)) {
      const said = problem(match)
      if (said !== undefined) found.push(`${at(match.index)}: ${said}`)
    }
  }
  find(
    /\b(?:function\*? |const )([a-z]+)(\w*Of)\b(?= ?=? ?(?:async )?[(<])/g,
    // `toAsOf` has its verb; `balanceOf` is the token standard's.
    ([, first, rest]) =>
      verbs.has(first) || first + rest === 'balanceOf'
        ? undefined
        : `${first}${rest}: a function begins with a verb`,
  )
  // The grammar that random statements are drawn by is a language of its own.
  if (file.startsWith('packages/') && !file.endsWith('.test-support.ts'))
    find(
      /^export (?:(?:async )?function\*? |const (?=\w+ = (?:async )?(?:<[^>]*>)?\([^()]*\)(?:: [^=]+)? =>))(([a-z]+)\w*)/gm,
      ([, name, verb]) =>
        verbs.has(verb) ? undefined : `${name}: "${verb}" is not a verb of GLOSSARY.md`,
    )
  find(
    /(?:\/\*\*(?:\n\s*\*)?|(?<!:)\/\/) (Of|What|Who|How|Whether)\b/g,
    ([, word]) => `a comment begins with a bare "${word}"`,
  )
  // Also a sentence further on, where a comment has several: a line of it that has the end of one and this word after it.
  find(
    /^(?:.*(?<!:)\/\/|\s*\/?\*).*?[.!?](?:\n\s*(?:\/\/|\*))? (Of|What|Who|How|Whether)\b/gm,
    ([, word]) => `a sentence of a comment begins with a bare "${word}"`,
  )
  if (/^packages\/[^/]+\/src\//.test(file))
    find(/\b[A-Za-z]+\b/g, ([word]) =>
      retired.has(word) ? `${word} is retired: ${retired.get(word)}` : undefined,
    )
  return found
}

/** The rows of the table under a heading of the glossary, each its cells. */
function section(heading) {
  const start = glossary.indexOf(`## ${heading}`)
  if (start < 0) throw new Error(`GLOSSARY.md has no heading "${heading}"`)
  const [text] = glossary.slice(start + 3).split('\n## ')
  return text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .slice(1)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
}

function sourceFiles(root) {
  return (
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /[.](ts|tsx|js|mjs)$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      // The checkers' own test plants what they refuse.
      .filter((file) => !/(^|\/)(dist|node_modules)\/|checkers[.]test[.]ts$/.test(file))
  )
}
