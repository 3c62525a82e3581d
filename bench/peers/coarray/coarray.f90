! SPDX-License-Identifier: Apache-2.0
! Coarrays of Fortran beside shared data: a put of 8 bytes, and the diffusion with a halo that is
! exchanged by assignments.
program coarray
  implicit none
  integer, parameter :: long = selected_int_kind(18), real8 = kind(1d0)
  character(len=16) :: seconds
  integer :: n, steps, status
  call get_environment_variable('PEER_SECONDS', seconds, status=status)
  n = 2048
  steps = 60
  if (status == 0 .and. index(seconds, '0.') == 1) then
    n = 256
    steps = 4
  end if
  call measure_put()
  call measure_diffusion()
contains
  subroutine measure_put()
    real(real8), allocatable :: v(:)[:]
    integer(long) :: first, last, rate
    integer :: i
    integer, parameter :: times = 100000
    allocate (v(1024)[*])
    sync all
    if (this_image() == 1) then
      call system_clock(first, rate)
      do i = 1, times
        v(mod(i, 1024) + 1)[num_images()] = i
      end do
      call system_clock(last)
      print '(a,f0.2)', 'coarray_put_ns ', real(last - first, real8) / rate * 1d9 / times
    end if
    sync all
  end subroutine

  subroutine measure_diffusion()
    real(real8), allocatable :: a(:, :, :)[:]
    integer(long) :: first, last, rate
    integer :: columns, left, right, step, now, next, i, j
    columns = n / num_images()
    left = modulo(this_image() - 2, num_images()) + 1
    right = modulo(this_image(), num_images()) + 1
    allocate (a(0:n + 1, 0:columns + 1, 2)[*])
    a = 1
    sync all
    call system_clock(first, rate)
    do step = 1, steps
      now = 1 + mod(step - 1, 2)
      next = 3 - now
      a(1:n, columns + 1, now)[left] = a(1:n, 1, now)
      a(1:n, 0, now)[right] = a(1:n, columns, now)
      a(0, 1:columns, now) = a(n, 1:columns, now)
      a(n + 1, 1:columns, now) = a(1, 1:columns, now)
      sync all
      do j = 1, columns
        do i = 1, n
          a(i, j, next) = a(i, j, now) + 0.2d0 * (a(i - 1, j, now) + a(i + 1, j, now) &
            + a(i, j - 1, now) + a(i, j + 1, now) - 4 * a(i, j, now))
        end do
      end do
      sync all
    end do
    call system_clock(last)
    if (this_image() == 1) print '(a,f0.2)', 'coarray_diffusion_mcells ', &
      real(n, real8) * n * steps / (real(last - first, real8) / rate) / 1d6
  end subroutine
end program
