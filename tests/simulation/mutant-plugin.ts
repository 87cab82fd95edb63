import { fileURLToPath } from 'node:url'
import type { Mutant } from './mutant.ts'
import { mutants } from './mutants.ts'

/** The mark of a module that belongs to a mutant: `file.ts?mutant=name`. */
const mark = /\?mutant=([a-z-]+)$/
const root = fileURLToPath(new URL('../../', import.meta.url))
/** The sources that a mutant loads anew: the one that it changes, and all that work with it. */
const own = new RegExp(`^${root}(packages/server/src|tests/simulation)/.*[.]ts$`)

/**
 * Lets a test load the code once more with one line changed: `import('./run.ts?mutant=name')` gives a copy of that
 * module and of all of the server that it works with, in which the mutant of this name is planted.
 */
export function plantMutants() {
  return {
    name: 'planted-mutants',
    enforce: 'pre' as const,
    async resolveId(
      this: { resolve: (...given: readonly unknown[]) => Promise<{ id: string } | null> },
      source: string,
      importer: string | undefined,
    ) {
      const name = (mark.exec(source) ?? mark.exec(importer ?? ''))?.[1]
      if (name === undefined) return null
      const bare = source.replace(mark, '')
      const found = await this.resolve(bare, importer?.replace(mark, ''), { skipSelf: true })
      return found !== null && own.test(found.id) ? `${found.id}?mutant=${name}` : found
    },
    transform(code: string, id: string) {
      const name = mark.exec(id)?.[1]
      if (name === undefined) return null
      const mutant = mutants.find((one) => one.name === name)
      if (mutant === undefined) throw new Error(`there is no mutant ${name}`)
      const path = id.replace(mark, '')
      return path === `${root}packages/server/src/${mutant.file}` ? plant(mutant, code) : null
    },
  }
}

/** Returns the source with the mutant in it; throws where the mutant's text is not there, or more than once. */
function plant({ name, file, find, put }: Mutant, code: string): string {
  const parts = code.split(find)
  if (parts.length !== 2)
    throw new Error(`mutant ${name}: its text is ${parts.length - 1} times in ${file}`)
  return parts.join(put)
}
