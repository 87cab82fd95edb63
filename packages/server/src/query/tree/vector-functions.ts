import type { FunctionDefinition } from './function-definition.ts'

/**
 * Prints a number made of the pairs of two lists of numbers, exactly: NULL unless both are lists of numbers of one
 * length, and not empty.
 */
const ofPairs =
  (result: string): FunctionDefinition['print'] =>
  (args) => {
    const lists = args.map(
      (list) => `jsonb_array_elements(CASE jsonb_typeof(${list}) WHEN 'array' THEN ${list} END)`,
    )
    const [a, b] = ['x', 'y'].map(
      (each) => `CASE jsonb_typeof(pair.${each}) WHEN 'number' THEN pair.${each}::numeric END`,
    )
    return `(SELECT CASE WHEN count(pair.a) = count(*) AND count(pair.b) = count(*) THEN ${result} END
 FROM (SELECT ${a} AS a, ${b} AS b FROM ROWS FROM (${lists.join(', ')}) AS pair (x, y)) AS pair)`
  }
const product = 'sum(pair.a * pair.b)'
const lengths = 'sqrt(sum(pair.a * pair.a)) * sqrt(sum(pair.b * pair.b))'

const distance = (print: FunctionDefinition['print']): FunctionDefinition => ({
  parameters: ['document', 'document'],
  result: 'number',
  print,
})

/** Distances of lists of numbers, by the names of pgvector. */
export const vectorFunctions: Readonly<Record<string, FunctionDefinition>> = {
  l2_distance: distance(ofPairs('sqrt(sum((pair.a - pair.b) * (pair.a - pair.b)))')),
  cosine_distance: distance(ofPairs(`1 - ${product} / nullif(${lengths}, 0)`)),
  inner_product: distance(ofPairs(product)),
  negative_inner_product: distance(ofPairs(`- ${product}`)),
}

/** The functions that pgvector's operators stand for. */
export const vectorOperators: ReadonlyMap<string, string> = new Map([
  ['<->', 'l2_distance'],
  ['<=>', 'cosine_distance'],
  ['<#>', 'negative_inner_product'],
])
