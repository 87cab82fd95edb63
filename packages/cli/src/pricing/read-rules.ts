import { readFile } from 'node:fs/promises'
import { explainReadError } from '@tollbase/server/base/files'
import { SetupError } from '@tollbase/server/base/setup-error'

/** Reads a list of rules, or an object with `rules` as the service answers it; the service judges the rules. */
export async function readRules(file: string): Promise<readonly unknown[]> {
  const text = await readText(file)
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    throw new SetupError(
      `${file} is not valid JSON: ${error instanceof Error ? error.message : ''}`,
    )
  }
  if (Array.isArray(parsed)) return parsed
  const rules =
    typeof parsed === 'object' && parsed !== null && 'rules' in parsed ? parsed.rules : undefined
  if (Array.isArray(rules)) return rules
  throw new SetupError(`${file} must be a list of rules, or an object with a list called rules`)
}

async function readText(file: string): Promise<string> {
  try {
    // Descriptor 0 is standard input.
    return await readFile(file === '-' ? '/dev/stdin' : file, 'utf8')
  } catch (error) {
    throw new SetupError(`${file} cannot be read: ${explainReadError(error)}`)
  }
}
