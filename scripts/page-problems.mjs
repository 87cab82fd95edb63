// Finds problems of the Markdown pages: sentences that must be read twice, retired words, and links, anchors and files
// that do not exist. check-words.mjs reports them beside those of the code.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** Folders whose pages and files are known, beside the pages of the root. */
const folders = ['bin', 'docs', 'bench', 'examples', 'packages', 'scripts', 'tests']
/** Records of the past keep the words and files of their time; their links must lead somewhere all the same. */
const history = /^(CHANGELOG[.]md|docs\/history\/|bench\/)/
/** The glossary lists the retired words, and names files as examples. */
const glossary = 'GLOSSARY.md'

/** Returns the problems of all pages, each with its file and line. */
export function findPageProblems(retired) {
  const files = listFiles()
  const pages = files
    .filter((file) => file.endsWith('.md'))
    .map((file) => ({ file, lines: readLines(file) }))
  const anchors = new Map(pages.map(({ file, lines }) => [file, listAnchors(lines)]))
  return pages.flatMap(({ file, lines }) =>
    lines.flatMap(({ text, number }) =>
      [
        ...findDeadLinks(text, { file, anchors }),
        ...(history.test(file) ? [] : findBareSentences(text)),
        ...(history.test(file) || file === glossary ? [] : findMissingFiles(text, files)),
        ...(history.test(file) || file === glossary ? [] : findRetired(text, retired)),
      ].map((problem) => `${file}:${number}: ${problem}`),
    ),
  )
}

/** A sentence begins a line, an item of a list or a cell of a table, or follows another one. Questions are free. */
function findBareSentences(text) {
  if (text.startsWith('#')) return []
  const starts =
    /(?:^(?: *(?:[-*]|\d+[.]) )?|[|.:!?][*_)]* )[*_]*(Of|What|Who|How|Whether|Nor|Not)\b(?![^.|]*[?])/g
  return [...text.replace(/`[^`]*`/g, '`').matchAll(starts)].map(
    ([, word]) => `a sentence begins with a bare "${word}"`,
  )
}

function findRetired(text, retired) {
  return [...text.replace(/\]\([^)]*\)/g, ']').matchAll(/\b[A-Za-z]+\b/g)].flatMap(([word]) =>
    retired.has(word) ? [`${word} is retired: ${retired.get(word)}`] : [],
  )
}

function findDeadLinks(text, { file, anchors }) {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link]) => {
    if (/^[a-z]+:/.test(link)) return []
    const [path, anchor] = link.split('#')
    const target = path === '' ? file : normalize(join(dirname(file), path))
    if (!existsSync(target)) return [`${link} leads nowhere`]
    const known = anchors.get(target)
    return anchor === undefined || known === undefined || known.has(anchor)
      ? []
      : [`${link} leads to no heading of ${target}`]
  })
}

/**
 * A page may leave out the first folders of a path, and `src`: `query/tree/functions/all-functions.ts`,
 * `verify/block.ts`.
 */
function findMissingFiles(text, files) {
  const isThere = (path) =>
    files.some((file) =>
      [file, file.replace('/src/', '/')].some((one) => `/${one}`.endsWith(`/${path}`)),
    )
  return [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)+[.](?:ts|mjs|js))`/g)].flatMap(([, path]) =>
    isThere(path) ? [] : [`${path} is not there`],
  )
}

/** The anchors that GitHub gives to the headings of a page. */
function listAnchors(lines) {
  const titles = lines.flatMap(({ text }) => /^#+ (.*)$/.exec(text)?.[1] ?? [])
  return new Set(
    titles.map((title) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

/** The lines outside of code blocks, numbered as in the file. */
function readLines(file) {
  let isCode = false
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((text, at) => {
      const isFence = /^\s*```/.test(text)
      if (isFence) isCode = !isCode
      return isFence || isCode ? [] : [{ text, number: at + 1 }]
    })
}

function listFiles() {
  const inFolders = folders.filter(existsSync).flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name)),
  )
  return [...readdirSync('.').filter((file) => file.endsWith('.md')), ...inFolders].filter(
    (file) => !/(^|\/)(dist|node_modules)\//.test(file),
  )
}
