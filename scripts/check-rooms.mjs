// Checks rooms.js: who may import whom. Exits 1 and names every import that breaks the table.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { cruise } from 'dependency-cruiser'
import { rooms } from '../rooms.js'

const testFile = '[.]test[.]ts$'
const roots = ['packages', 'tests', 'bench', 'scripts', 'bin', 'examples'].filter(isFolder)

const { output } = await cruise(roots, {
  validate: true,
  ruleSet: { forbidden: [...roomRules(), ...areaRules(), ...houseRules()] },
  // TypeScript 7 has no API for dependency-cruiser: with its default parser it reads nothing and succeeds.
  parser: 'swc',
  doNotFollow: { path: 'node_modules' },
  exclude: { path: '(^|/)dist/' },
  enhancedResolveOptions: {
    exportsFields: ['exports'],
    conditionNames: ['import', 'node', 'default'],
  },
})

const files = roots.flatMap(sourceFiles)
const problems = [
  ...output.summary.violations.map(describeViolation),
  ...unreadFiles(files, output.modules),
  ...homelessFiles(files),
]
for (const problem of problems) console.error(problem)
const edges = output.modules.reduce((sum, module) => sum + module.dependencies.length, 0)
console.log(`rooms: ${files.length} files, ${edges} imports, ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1

function roomRules() {
  return Object.entries(rooms).map(([name, room]) => ({
    name: `${name}-imports`,
    comment: `${name} may import ${room.may.join(', ') || 'no other room'} (rooms.js)`,
    severity: 'error',
    from: { path: inRoom(room), pathNot: testFile },
    to: {
      path: '^(packages|tests|bench|scripts|bin|examples)/',
      pathNot: [...[name, ...room.may].map((other) => inRoom(rooms[other])), 'node_modules/'],
    },
  }))
}

/** A folder of a room with areas imports no other folder of the room. */
function areaRules() {
  return Object.entries(rooms)
    .filter(([, room]) => room.areas === true)
    .map(([name, room]) => ({
      name: `${name}-areas`,
      comment: `areas of ${name} never import each other (rooms.js)`,
      severity: 'error',
      from: { path: `^${room.path}/([^/]+)/`, pathNot: testFile },
      to: { path: `^${room.path}/[^/]+/`, pathNot: `^${room.path}/$1/` },
    }))
}

function houseRules() {
  return [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-unresolved',
      severity: 'error',
      // The packages of a peer are installed when a benchmark asks for it.
      from: { pathNot: '^bench/peers/[^/]+/' },
      to: { couldNotResolve: true },
    },
    { name: 'no-test-imports', severity: 'error', from: {}, to: { path: testFile } },
  ]
}

function describeViolation({ rule, from, to, comment, cycle }) {
  const way = cycle ? [from, ...cycle.map((step) => step.name)].join(' -> ') : `${from} -> ${to}`
  return `${rule.name}: ${way}${comment ? ` (${comment})` : ''}`
}

/** A checker that silently read nothing must not pass. */
function unreadFiles(onDisk, modules) {
  const read = new Set(modules.map((module) => module.source))
  const seen = modules.some((module) => module.dependencies.length > 0)
  return [
    ...onDisk.filter((file) => !read.has(file)).map((file) => `not-read: ${file}`),
    ...(seen ? [] : ['not-read: no import was seen in any file']),
  ]
}

function homelessFiles(onDisk) {
  const homes = Object.values(rooms).map((room) => new RegExp(inRoom(room)))
  return onDisk
    .filter((file) => file.startsWith('packages/') && !homes.some((home) => home.test(file)))
    .map((file) => `no-room: ${file} belongs to no room of rooms.js`)
}

/** A room is a folder, or the files whose path begins so. */
function inRoom(room) {
  return `^${room.path}(/|[^/]*[.]tsx?$)`
}

function sourceFiles(root) {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /[.](ts|tsx|js|mjs)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !/(^|\/)(dist|node_modules)\//.test(file))
}

function isFolder(path) {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
