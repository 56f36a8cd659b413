{% for major in old_majors %}
found=
for nvcc in "${CUDA_PATH:-}/bin/nvcc" "${CUDA_HOME:-}/bin/nvcc" nvcc /usr/local/cuda/bin/nvcc /usr/local/cuda-{= major =}*/bin/nvcc; do
  version="$("$nvcc" --version 2> /dev/null)" || continue
  if [[ "$version" == *"release {= major =}."* ]]; then found="$nvcc"; break; fi
done
if [[ -z "$found" ]]; then
  echo "::error::there is no compiler of CUDA {= major =}, which no Python package brings: name a runner in ci/matrix.yml that has its toolkit, or install it before and set CUDA_PATH"
  exit 1
fi
echo "CUDA {= major =}: $found"
{% endfor %}
