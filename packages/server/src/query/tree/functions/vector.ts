import { type Measure, printDistance, printNumbers } from '../../vector.ts'
import type { FunctionDefinition } from './function-definition.ts'

const distance = (measure: Measure, sign = ''): FunctionDefinition => ({
  parameters: ['document', 'document'],
  result: 'number',
  print: ([a = '', b = '']) =>
    `(${sign}${printDistance(measure, printNumbers(a), printNumbers(b))})`,
})

/** Distances of lists of numbers, by the names of pgvector. */
export const vectorFunctions: Readonly<Record<string, FunctionDefinition>> = {
  l2_distance: distance('l2'),
  cosine_distance: distance('cosine'),
  inner_product: distance('inner_product'),
  negative_inner_product: distance('inner_product', '- '),
}

/** The functions that pgvector's operators stand for. */
export const vectorOperators: ReadonlyMap<string, string> = new Map([
  ['<->', 'l2_distance'],
  ['<=>', 'cosine_distance'],
  ['<#>', 'negative_inner_product'],
])
