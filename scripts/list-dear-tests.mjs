// Lists the test files that a whole run spends long on, with their seconds in it, from the report of such a run. One of
// some files changes only what it says of these.
//   TOLLBASE_TESTS=files npm test -- --reporter=json --outputFile=report.json
//   node scripts/list-dear-tests.mjs report.json
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const repository = join(import.meta.dirname, '..')
const secondsMin = 7
const [report] = process.argv.slice(2)
if (report === undefined) {
  console.error('usage: node scripts/list-dear-tests.mjs <JSON report of a run>')
  process.exit(2)
}
const files = JSON.parse(readFileSync(report, 'utf8')).testResults.map((file) => [
  relative(repository, file.name),
  Math.round((file.endTime - file.startTime) / 1000),
])
const list = join(repository, 'tests/support/dear-files.json')
const known = JSON.parse(readFileSync(list, 'utf8'))
const dear = Object.entries({ ...known, ...Object.fromEntries(files) })
  .filter(([, seconds]) => seconds >= secondsMin)
  .sort(([a, more], [b, less]) => less - more || (a < b ? -1 : 1))
writeFileSync(list, `${JSON.stringify(Object.fromEntries(dear), null, 2)}\n`)
