/** Records that are so many that PostgreSQL prefers an index, where there is one. */
export const people = Array.from({ length: 1_500 }, (_, at) => ({
  id: `p${at}`,
  age: at % 90,
  name: `name ${at}`,
  city: { name: `city ${at % 7}` },
}))
