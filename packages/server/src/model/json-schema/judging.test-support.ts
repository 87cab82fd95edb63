import { compileJsonSchema } from './compile.ts'
import { type Problem, Run } from './run.ts'
import { Work } from './work.ts'

/** Lists the problems of a value, as texts `<pointer> <problem>`. */
export function listProblems(
  schema: Readonly<Record<string, unknown>>,
  value: unknown,
  work = new Work(),
): readonly string[] {
  const problems: Problem[] = []
  compileJsonSchema(schema)(value, new Run(work, problems))
  return problems.map(({ pointer, problem }) => `${pointer} ${problem}`)
}

/** Says whether a value is right. */
export function isRight(schema: Readonly<Record<string, unknown>>, value: unknown): boolean {
  return compileJsonSchema(schema)(value, new Run(new Work()))
}
